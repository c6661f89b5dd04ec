// The driver's library, as far as launches with tensor maps, clusters and attributes ask for it: a map
// is its own record.

#include <cstdint>
#include <cstring>

extern "C" {

unsigned calls = 0;
int answer = 0;  // what each call returns

// Words of a map: an address, two sizes, a stride in bytes, two sides of a box, then the type, the
// rank, the steps of both dimensions, interleaving, swizzle, promotion and fill.
int cuTensorMapEncodeTiled(uint64_t *map, int type, uint32_t rank, void *address,
                           const uint64_t *sizes, const uint64_t *strides, const uint32_t *box,
                           const uint32_t *steps, int interleave, int swizzle, int promotion,
                           int fill) {
  ++calls;
  const auto start = reinterpret_cast<uint64_t>(address);
  if (answer != 0) return answer;
  if (reinterpret_cast<uintptr_t>(map) % 64 != 0 || start == 0 || start % 16 != 0) return 1;
  if (rank != 2 || sizes[0] == 0 || sizes[1] == 0 || strides[0] % 16 != 0) return 1;
  const uint64_t made[16] = {
      start,    sizes[0], sizes[1],
      strides[0], box[0], box[1],
      static_cast<uint64_t>(type), rank, steps[0],
      steps[1], static_cast<uint64_t>(interleave), static_cast<uint64_t>(swizzle),
      static_cast<uint64_t>(promotion), static_cast<uint64_t>(fill),
  };
  memcpy(map, made, sizeof made);
  return 0;
}

// CUlaunchConfig.
struct Config {
  uint32_t grid[3], block[3], shared;
  void *stream, *attributes;
  uint32_t attribute_count;
};
Config asked;
int active = 3;  // clusters

int cuOccupancyMaxActiveClusters(int *clusters, void *function, const Config *config) {
  ++calls;
  if (answer != 0) return answer;
  if (reinterpret_cast<uintptr_t>(function) != 42 || config->attribute_count != 0) return 1;
  asked = *config;
  *clusters = active;
  return 0;
}

int (*launched)(const Config *, void *function, void **arguments);  // what a test makes of a launch

int cuLaunchKernelEx(const Config *config, void *function, void **arguments, void **extra) {
  ++calls;
  if (answer != 0) return answer;
  return extra == nullptr ? launched(config, function, arguments) : 1;
}
}

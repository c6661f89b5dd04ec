// cuTensorMapEncodeTiled: refuses what CUDA's driver API says it refuses, and encodes the rest so
// that the models of TMA's instructions can read it.

#include "tensor_map.h"
#include "runner.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace gg {
namespace {

constexpr int INVALID_VALUE = 1;
constexpr int NOT_FOUND = 1, VERSION = 2;  // cudaDriverEntryPointQueryResult
constexpr unsigned FIRST_VERSION = 12000;
constexpr uint64_t MOST_ELEMENTS = uint64_t{1} << 32, STRIDE_BOUND = uint64_t{1} << 40;
constexpr unsigned ALIGNMENT = 16, LONGEST_SIDE = 256, LONGEST_STEP = 8;
// Of CU_TENSOR_MAP_DATA_TYPE_UINT8, UINT16, UINT32, INT32, UINT64, INT64, FLOAT16, FLOAT32,
// FLOAT64, BFLOAT16, FLOAT32_FTZ, TFLOAT32, TFLOAT32_FTZ.
constexpr uint8_t BYTES[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
constexpr unsigned FIRST_REAL = 6;
// Bytes of a box's row, at most, by CU_TENSOR_MAP_SWIZZLE_*: NONE, 32B, 64B, 128B.
constexpr unsigned SPANS[] = {0, 32, 64, 128};
constexpr int PROMOTIONS = 4, FILLS = 2;

char refusal[128];
alignas(128) unsigned char kept[MAX_MAPS][sizeof(TensorMap)];
unsigned count;
uint32_t encodings;  // of the call, refused ones included

__attribute__((format(printf, 1, 2))) int refused(const char *format, ...) {
  va_list values;
  va_start(values, format);
  vsnprintf(refusal, sizeof refusal, format, values);
  va_end(values);
  return INVALID_VALUE;
}

using ull = unsigned long long;

// What is wrong with one dimension, or 0.
int check_dimension(unsigned i, const uint64_t *sizes, const uint64_t *strides, const uint32_t *box,
                    const uint32_t *steps) {
  if (sizes[i] == 0 || sizes[i] > MOST_ELEMENTS) {
    return refused("size %u is %llu, not 1 to 2^32", i, ull{sizes[i]});
  }
  if (box[i] == 0 || box[i] > LONGEST_SIDE) {
    return refused("side %u of the box is %u, not 1 to %u", i, box[i], LONGEST_SIDE);
  }
  if (steps[i] == 0 || steps[i] > LONGEST_STEP) {
    return refused("element stride %u is %u, not 1 to %u", i, steps[i], LONGEST_STEP);
  }
  if (i == 0) return 0;
  const uint64_t stride = strides[i - 1];
  if (stride % ALIGNMENT != 0) {
    return refused("stride %u is %llu bytes, no multiple of %u", i, ull{stride}, ALIGNMENT);
  }
  if (stride >= STRIDE_BOUND) return refused("stride %u is %llu bytes, not below 2^40", i, ull{stride});
  return 0;
}

int check_modes(unsigned type, int interleave, int swizzle, int promotion, int fill) {
  if (interleave != 0) return refused("interleaved layouts have no model");
  if (swizzle < 0 || swizzle > 3) return refused("swizzle %d has no model", swizzle);
  if (promotion < 0 || promotion >= PROMOTIONS) return refused("there is no promotion %d", promotion);
  if (fill < 0 || fill >= FILLS) return refused("there is no fill %d", fill);
  if (fill != 0 && type < FIRST_REAL) return refused("integers are not filled with NaN");
  return 0;
}

// CUresult cuTensorMapEncodeTiled(...), with ints for its enums.
int encode_tiled(TensorMap *map, int type, uint32_t rank, void *address, const uint64_t *sizes,
                 const uint64_t *strides, const uint32_t *box, const uint32_t *steps,
                 int interleave, int swizzle, int promotion, int fill) {
  const int asked = map_error(encodings++);
  if (asked != 0) {
    memset(map, 0xff, sizeof *map);  // what a refused map holds is undocumented
    return asked;
  }
  refusal[0] = 0;
  const auto place = reinterpret_cast<uintptr_t>(map);
  if (place == 0 || place % 64 != 0) return refused("the map's address is not a multiple of 64");
  if (bytes_of_type(type) == 0) return refused("there is no type %d", type);
  if (rank == 0 || rank > MAP_RANK) return refused("the rank is %u, not 1 to %u", rank, MAP_RANK);
  const auto start = reinterpret_cast<uintptr_t>(address);
  // The driver refuses a null pointer, which its documentation does not say.
  if (start == 0) return refused("the tensor's address is null");
  if (start % ALIGNMENT != 0) return refused("the tensor's address is not a multiple of %u", ALIGNMENT);
  const int modes = check_modes(type, interleave, swizzle, promotion, fill);
  if (modes != 0) return modes;
  for (unsigned i = 0; i < rank; ++i) {
    const int wrong = check_dimension(i, sizes, strides, box, steps);
    if (wrong != 0) return wrong;
  }
  const unsigned row = box[0] * bytes_of_type(type);
  if (row % ALIGNMENT != 0) return refused("a row of the box is %u bytes, no multiple of 16", row);
  if (swizzle != 0 && row > SPANS[swizzle]) {
    return refused("a row of the box is %u bytes, more than the %u swizzled", row, SPANS[swizzle]);
  }
  TensorMap made = {};
  made.address = static_cast<const unsigned char *>(address);
  for (unsigned i = 0; i < rank; ++i) {
    made.sizes[i] = sizes[i];
    if (i > 0) made.strides[i - 1] = strides[i - 1];
    made.box[i] = static_cast<uint16_t>(box[i]);
    made.steps[i] = static_cast<uint8_t>(steps[i]);
  }
  made.rank = static_cast<uint8_t>(rank);
  made.type = static_cast<uint8_t>(type);
  made.swizzle = static_cast<uint8_t>(swizzle);
  made.promotion = static_cast<uint8_t>(promotion);
  made.fill = static_cast<uint8_t>(fill);
  made.mark = MAP_MARK;
  memcpy(map, &made, sizeof made);
  return 0;
}

}  // namespace

unsigned bytes_of_type(unsigned type) { return type < sizeof BYTES ? BYTES[type] : 0; }

const TensorMap *map_at(const void *map) {
  const auto *found = static_cast<const TensorMap *>(map);
  const bool whole = reinterpret_cast<uintptr_t>(map) % 64 == 0 && found->mark == MAP_MARK;
  return whole ? found : nullptr;
}

void *keep_map(const void *map) {
  if (count == MAX_MAPS) fault("a launch has more than %u tensor maps", MAX_MAPS);
  return memcpy(kept[count++], map, sizeof(TensorMap));
}

unsigned kept_maps() { return count; }

const TensorMap &kept_map(unsigned index) {
  return *reinterpret_cast<const TensorMap *>(kept[index]);
}

void forget_maps() {
  count = encodings = 0;
  refusal[0] = 0;
}

uint32_t map_encodings() { return encodings; }

const char *map_refusal() { return refusal; }

// The driver is the oldest that has the function.
int find_in_driver(const char *name, unsigned version, void **function) {
  if (strcmp(name, "cuTensorMapEncodeTiled") != 0) return NOT_FOUND;
  if (version != FIRST_VERSION) return VERSION;
  *function = reinterpret_cast<void *>(encode_tiled);
  return 0;
}

}  // namespace gg

extern "C" void *gg_keep_map(const void *map) { return gg::keep_map(map); }

// A map for a kernel that is run without a launcher.
extern "C" void *gg_make_map(void *address, const GgMapped *mapped) {
  using namespace gg;
  alignas(128) TensorMap map = {};
  uint64_t sizes[MAP_RANK], strides[MAP_RANK] = {};
  uint32_t steps[MAP_RANK];
  for (unsigned i = 0; i < mapped->rank; ++i) {
    if (mapped->sizes[i] == 0) address = &map;
    sizes[i] = mapped->sizes[i] == 0 ? 1 : static_cast<uint64_t>(mapped->sizes[i]);
    if (i > 0) strides[i - 1] = static_cast<uint64_t>(mapped->strides[i - 1]);
    steps[i] = 1;
  }
  const int error = encode_tiled(&map, mapped->type, mapped->rank, address, sizes, strides,
                                 mapped->box, steps, 0, mapped->swizzle, 2, 0);
  if (error != 0) fault("cuTensorMapEncodeTiled: %s", refusal);
  return keep_map(&map);
}

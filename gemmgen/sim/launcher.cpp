// The CUDA runtime that the text's launcher calls: records each call and answers as a GPU would.
//
// A launch request goes through the launcher, and the kernel runs with the arguments that arrive.
// Calls of the launcher alone, with any arguments, record what it launches and what it refuses.

#include "runner.h"
#include "tensor_map.h"

#include <cstdlib>
#include <cstring>

namespace gg {
namespace {

constexpr int INVALID_VALUE = 1, INVALID_CONFIGURATION = 9, INVALID_DEVICE = 101;
constexpr int INVALID_CLUSTER = 912;
constexpr int OFTEN = 8;  // devices from 0 on that calls may name again; any other is a new one
constexpr int NO_COUNT = 7919;  // where there was an error
constexpr unsigned DEFAULT_LIMIT = 48 * 1024;  // bytes of shared memory that need no attribute

// The layouts are repeated in gemmgen/sim/launcher_calls.py.
struct Called {
  int32_t error;
  uint32_t launches, attributes;
  uint32_t errors_taken;
  uint32_t is_kernel;  // 1: all of these named the text's kernel
  int32_t attribute, attribute_value;
  uint32_t grid[3], block[3];
  uint32_t late;  // 1: an attribute was set after a launch
  uint32_t launch_attributes;  // numbers as bits
  uint32_t questions;  // attributes set, and figures of the device or of the kernel asked for
  uint32_t encodings;  // tensor maps that the driver was to encode
  uint64_t shared, stream;
  char refusal[128];  // why a tensor map was not encoded, in words
};
struct CallHead {
  uint64_t stream;
  // What the runtime answers; 0: as a GPU would.
  int32_t attribute_error, launch_error, map_error;
  uint32_t refused_map;  // the encoding that `map_error` is about, from 0
  int32_t entry_error;
  uint32_t no_entry;  // 1: the driver has no such function
  int32_t device_error;
  int32_t multiprocessors;  // and this many clusters run at a time
  int32_t count_error;  // of a question about either
  int32_t device;  // the current one
};

Called called;
GgLaunch asked;  // what the launcher has asked about; no kernel: nothing
CallHead answers;
GgArgument launched[MAX_ARGUMENTS];
int pending_error;
unsigned dynamic_limits[OFTEN + 1];  // bytes of shared memory that each device allows the kernel
bool executes;  // a pre-pass is run, not only noted

unsigned &dynamic_limit() {
  return dynamic_limits[answers.device >= 0 && answers.device < OFTEN ? answers.device : OFTEN];
}

// The error of a launch that a GPU would refuse, else 0.
int error_of(const GgLaunch &launch) {
  const uint64_t threads = uint64_t{launch.block[0]} * launch.block[1] * launch.block[2];
  if (threads == 0 || threads > MAX_THREADS) return INVALID_CONFIGURATION;
  if (launch.grid[0] == 0 || launch.grid[0] > 0x7fffffff) return INVALID_CONFIGURATION;
  if (launch.grid[1] - 1 > 65534 || launch.grid[2] - 1 > 65534) return INVALID_CONFIGURATION;
  if (launch.grid[0] % gg_cluster_blocks != 0) return INVALID_CLUSTER;
  return launch.shared > dynamic_limit() ? INVALID_VALUE : 0;
}

// Whether a GPU runs as many of the one as of the other.
bool is_alike(const GgLaunch &one, const GgLaunch &other) {
  return one.kernel == other.kernel && one.shared == other.shared &&
         memcmp(one.block, other.block, sizeof one.block) == 0;
}

void call(const GgArgument *arguments) {
  called = {};
  called.is_kernel = 1;
  asked = {};
  pending_error = 0;
  forget_maps();
  const unsigned limit = DEFAULT_LIMIT > gg_static_shared ? DEFAULT_LIMIT - gg_static_shared : 0;
  for (unsigned &each : dynamic_limits) {
    if (&each == &dynamic_limits[OFTEN] || each < limit) each = limit;
  }
  void *stream;
  memcpy(&stream, &answers.stream, sizeof stream);
  called.error = gg_call_launcher(arguments, stream);
  called.encodings = map_encodings();
  strncpy(called.refusal, map_refusal(), sizeof called.refusal - 1);
}

[[noreturn]] void differs(const char *what, unsigned long long is, unsigned long long wanted) {
  fault("the launcher launches with %s %llu, where the interface says %llu", what, is, wanted);
}

}  // namespace

void launch_by_launcher() {
  const Header &header = state.header;
  answers = {};
  answers.multiprocessors = static_cast<int32_t>(header.multiprocessors);
  static int32_t last_device = 1 << 20;
  answers.device = ++last_device;
  blockIdx = {};
  state.thread = 0;
  executes = true;
  call(state.arguments);
  executes = false;
  if (called.error != 0) {
    const char *refusal = called.refusal, *of = *refusal != 0 ? ": cuTensorMapEncodeTiled: " : "";
    fault("the launcher refuses the call with error %d%s%s", called.error, of, refusal);
  }
  if (called.launches != 1) fault("the launcher launches %u times", called.launches);
  if (called.is_kernel == 0) fault("the launcher launches another function than the kernel");
  const unsigned rest[] = {called.grid[1], called.grid[2], called.block[2]};
  for (const unsigned one : rest) {
    if (one != 1) differs("another dimension of", one, 1);
  }
  if (called.grid[0] != header.grid) differs("a grid of", called.grid[0], header.grid);
  const unsigned x = called.block[0], y = called.block[1];
  if (x != header.block_x) differs("threads along x of", x, header.block_x);
  if (y != header.block_y) differs("threads along y of", y, header.block_y);
  if (called.shared != gg_dynamic_shared) {
    differs("dynamic shared bytes of", called.shared, gg_dynamic_shared);
  }
  if (called.launch_attributes != header.attributes) {
    differs("the attributes", called.launch_attributes, header.attributes);
  }
  memcpy(state.arguments, launched, sizeof launched);
}

int map_error(uint32_t encoding) { return encoding == answers.refused_map ? answers.map_error : 0; }

// Reads `count` calls, each a CallHead and arguments; answers each with `Called`, the arguments that
// reached the kernel, and the tensor maps among them.
bool answer_calls(uint32_t count) {
  struct {
    uint32_t given, passed, maps;  // arguments of the launcher and of the kernel
  } sizes;
  if (!read_bytes(&sizes, sizeof sizes)) return false;
  if (!gg_has_launcher) fault("the text has no launcher");
  const bool fit = sizes.given <= MAX_ARGUMENTS && sizes.passed <= MAX_ARGUMENTS;
  if (!fit || sizes.maps > MAX_MAPS) fault("the request is malformed");
  const size_t passed = sizes.passed * sizeof *launched;
  const uint64_t size = sizeof called + passed + sizes.maps * sizeof(TensorMap);
  blockIdx = {};
  state.thread = 0;
  auto *answer = static_cast<unsigned char *>(malloc(count * size + 1)), *end = answer;
  if (answer == nullptr) fault("no memory for the answers of %u calls", count);
  for (uint32_t i = 0; i < count; ++i) {
    static GgArgument given[MAX_ARGUMENTS];
    if (!read_bytes(&answers, sizeof answers)) return false;
    if (!read_bytes(given, sizes.given * sizeof *given)) return false;
    memset(launched, 0, sizeof launched);
    call(given);
    memcpy(end, &called, sizeof called);
    memcpy(end + sizeof called, launched, passed);
    auto *maps = end + sizeof called + passed;
    memset(maps, 0, sizes.maps * sizeof(TensorMap));
    for (uint32_t j = 0; j < kept_maps() && j < sizes.maps; ++j) {
      memcpy(maps + j * sizeof(TensorMap), &kept_map(j), sizeof(TensorMap));
    }
    end += size;
  }
  write_head(4, count * size);
  write_bytes(answer, count * size);
  free(answer);
  return true;
}

}  // namespace gg

extern "C" int gg_note_attribute(const void *kernel, int attribute, int value) {
  using namespace gg;
  ++called.attributes;
  ++called.questions;
  called.attribute = attribute;
  called.attribute_value = value;
  called.is_kernel &= kernel == gg_kernel;
  called.late |= called.launches != 0;
  if (answers.attribute_error == 0 && attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) {
    dynamic_limit() = value < 0 ? 0 : static_cast<unsigned>(value);
  }
  return answers.attribute_error;
}

extern "C" void gg_note_launch(const GgLaunch *launch, const GgArgument *arguments,
                               unsigned count) {
  using namespace gg;
  pending_error = answers.launch_error != 0 ? answers.launch_error : error_of(*launch);
  if (pending_error != 0) return;
  if (asked.kernel != nullptr && !is_alike(asked, *launch)) {
    fault("the launcher asks how many clusters run at a time of another kernel, other blocks or "
          "other shared memory than it launches");
  }
  ++called.launches;
  called.is_kernel &= launch->kernel == gg_kernel;
  memcpy(called.grid, launch->grid, sizeof called.grid);
  memcpy(called.block, launch->block, sizeof called.block);
  called.launch_attributes = launch->attributes;
  called.shared = launch->shared;
  called.stream = reinterpret_cast<uintptr_t>(launch->stream);
  memcpy(launched, arguments, (count < MAX_ARGUMENTS ? count : MAX_ARGUMENTS) * sizeof *arguments);
}

// Whether the pre-pass is to be run.
extern "C" int gg_begin_pre_pass(const GgLaunch *launch) {
  using namespace gg;
  if (called.launches != 0) fault("the launcher launches what splits operands after the kernel");
  if (reinterpret_cast<uintptr_t>(launch->stream) != answers.stream) {
    fault("the launcher launches what splits operands on another stream");
  }
  if (!executes) return 0;
  const unsigned x = launch->grid[0], rest = launch->grid[1] * launch->grid[2];
  if (x == 0 || x > 0x7fffffff || rest != 1 || launch->block[0] > MAX_THREADS) {
    fault("the launcher launches what splits operands with %u x %u blocks", x, rest);
  }
  gridDim = {x, 1, 1};
  blockDim = {launch->block[0], 1, 1};
  return 1;
}

extern "C" void gg_next_pre_pass(unsigned block, unsigned thread) {
  blockIdx = {block, 0, 0};
  threadIdx = {thread, 0, 0};
}

extern "C" void gg_end_pre_pass() {
  blockIdx = threadIdx = {};
}

extern "C" int gg_active_clusters(int *clusters, const GgLaunch *launch) {
  using namespace gg;
  ++called.questions;
  *clusters = NO_COUNT;
  if (answers.count_error != 0) return answers.count_error;
  if (gg_cluster_blocks == 1) return INVALID_CLUSTER;
  const int error = error_of(*launch);
  if (error != 0) return error;
  asked = *launch;
  *clusters = answers.multiprocessors;
  return 0;
}

extern "C" int gg_take_error() {
  const int error = gg::pending_error;
  gg::pending_error = 0;
  ++gg::called.errors_taken;
  return error;
}

extern "C" int gg_note_entry(const char *name, unsigned version, void **function, int *found) {
  using namespace gg;
  *function = nullptr;
  if (answers.entry_error != 0) return answers.entry_error;
  *found = answers.no_entry != 0 ? 1 : find_in_driver(name, version, function);
  return 0;
}

extern "C" int gg_current_device(int *device) {
  *device = gg::answers.device;
  return gg::answers.device_error;
}

extern "C" int gg_device_attribute(int *value, int attribute, int device) {
  using namespace gg;
  ++called.questions;
  *value = NO_COUNT;
  if (answers.count_error != 0) return answers.count_error;
  if (device != answers.device) return INVALID_DEVICE;
  if (attribute != cudaDevAttrMultiProcessorCount) return INVALID_VALUE;
  *value = answers.multiprocessors;
  return 0;
}

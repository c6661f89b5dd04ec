// The part of the CUDA runtime that a launcher calls.  Nothing is executed: launcher.cpp records
// each call and answers as a GPU does.
#pragma once

typedef __SIZE_TYPE__ size_t;

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorMisalignedAddress = 716,
  cudaErrorNotSupported = 801
};
enum cudaDriverEntryPointQueryResult { cudaDriverEntryPointSuccess = 0 };
constexpr unsigned long long cudaEnableDefault = 0;
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
enum cudaDeviceAttr { cudaDevAttrMultiProcessorCount = 16 };
typedef struct CUstream_st *cudaStream_t;

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

struct GgLaunch {
  const void *kernel;
  unsigned grid[3], block[3];
  unsigned long long shared;
  const void *stream;
  unsigned attributes = 0;  // numbers as bits
};
extern "C" int gg_note_attribute(const void *kernel, int attribute, int value);
extern "C" void gg_note_launch(const GgLaunch *launch, const GgArgument *arguments, unsigned count);
extern "C" int gg_take_error();
extern "C" int gg_note_entry(const char *name, unsigned version, void **function, int *found);
extern "C" void *gg_keep_map(const void *map);
// Dimensions innermost first, strides in bytes.
struct GgMapped {
  int type;
  unsigned rank;
  long long sizes[5], strides[4];
  unsigned box[5];
  int swizzle;
};
extern "C" void *gg_make_map(void *address, const GgMapped *mapped);
extern "C" int gg_current_device(int *device);
extern "C" int gg_active_clusters(int *clusters, const GgLaunch *launch);
extern "C" int gg_device_attribute(int *value, int attribute, int device);

template <typename Kernel>
inline cudaError_t cudaFuncSetAttribute(Kernel *kernel, cudaFuncAttribute attribute, int value) {
  const auto *address = reinterpret_cast<const void *>(kernel);
  return static_cast<cudaError_t>(gg_note_attribute(address, attribute, value));
}
inline cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function,
                                                    unsigned version, unsigned long long,
                                                    cudaDriverEntryPointQueryResult *result) {
  int found = 0;
  const int error = gg_note_entry(name, version, function, &found);
  *result = static_cast<cudaDriverEntryPointQueryResult>(found);
  return static_cast<cudaError_t>(error);
}
inline cudaError_t cudaGetDevice(int *device) {
  return static_cast<cudaError_t>(gg_current_device(device));
}
inline cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device) {
  return static_cast<cudaError_t>(gg_device_attribute(value, attribute, device));
}
inline cudaError_t cudaGetLastError() { return static_cast<cudaError_t>(gg_take_error()); }

// An argument by its type; the bytes after it are zeros.
inline GgArgument gg_argument(int value) {
  GgArgument argument = {.wide = 0};
  argument.integer = value;
  return argument;
}
inline GgArgument gg_argument(long long value) { return {.wide = value}; }
inline GgArgument gg_argument(float value) {
  GgArgument argument = {.wide = 0};
  argument.real = value;
  return argument;
}
inline GgArgument gg_argument(double value) { return {.precise = value}; }
inline GgArgument gg_argument(const void *value) { return {.pointer = const_cast<void *>(value)}; }
// A tensor map, by its member: its 128 bytes are kept.
template <typename Map>
inline decltype(Map::words, GgArgument()) gg_argument(const Map &map) {
  static_assert(sizeof(Map) == 128 && alignof(Map) == 128, "as a CUtensorMap");
  return {.pointer = gg_keep_map(&map)};
}

// unit.py writes kernel<<<grid, block, shared, stream>>>(arguments) as
// gg_configure(kernel, grid, block, shared, stream)(arguments).
template <typename... Parameters>
struct GgConfigured {
  GgLaunch launch;
  void operator()(Parameters... values) const {
    const GgArgument arguments[] = {gg_argument(values)..., GgArgument{.wide = 0}};
    gg_note_launch(&launch, arguments, sizeof...(Parameters));
  }
};
template <typename... Parameters>
inline GgConfigured<Parameters...> gg_configure(void (*kernel)(Parameters...), dim3 grid,
                                                dim3 block, size_t shared = 0,
                                                cudaStream_t stream = nullptr) {
  const auto *address = reinterpret_cast<const void *>(kernel);
  return {{address, {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared, stream}};
}

// The same of a pre-pass: it is run at once, if launches are.  The threads of one without shared
// memory need no others, and are run one after another.
extern "C" int gg_begin_pre_pass(const GgLaunch *launch);
extern "C" void gg_next_pre_pass(unsigned block, unsigned thread);
extern "C" void gg_end_pre_pass();
extern "C" void gg_run_pre_pass(void (*thread)());
template <typename... Parameters>
struct GgPrePass {
  GgLaunch launch;
  void (*kernel)(Parameters...);
  bool together;
  // Not checked as the kernel's own accesses are: what it reads is the runner's.
  template <typename Thread>
  __attribute__((no_sanitize("thread"))) static void run_together(const Thread &thread) {
    static const Thread *running;
    running = &thread;
    gg_run_pre_pass([]() __attribute__((no_sanitize("thread"))) { (*running)(); });
  }
  void operator()(Parameters... values) const {
    if (gg_begin_pre_pass(&launch) == 0) return;
    if (together) {
      run_together([&]() __attribute__((no_sanitize("thread"))) { kernel(values...); });
      gg_end_pre_pass();
      return;
    }
    for (unsigned block = 0; block < launch.grid[0]; ++block) {
      for (unsigned thread = 0; thread < launch.block[0]; ++thread) {
        gg_next_pre_pass(block, thread);
        kernel(values...);
      }
    }
    gg_end_pre_pass();
  }
};
template <typename... Parameters>
inline GgPrePass<Parameters...> gg_pre_pass(bool together, void (*kernel)(Parameters...),
                                            dim3 grid, dim3 block, size_t shared = 0,
                                            cudaStream_t stream = nullptr) {
  const auto *address = reinterpret_cast<const void *>(kernel);
  const GgLaunch launch = {
      address, {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared, stream};
  return {launch, kernel, together};
}

// A launch with attributes: one is known.
enum cudaLaunchAttributeID { cudaLaunchAttributeProgrammaticStreamSerialization = 6 };
union cudaLaunchAttributeValue {
  char pad[64];
  int programmaticStreamSerializationAllowed;
};
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  char pad[8 - sizeof(cudaLaunchAttributeID)];
  cudaLaunchAttributeValue val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute *attrs;
  unsigned numAttrs;
};
// Of a kernel whose text says how large its clusters are.
template <typename Kernel>
inline cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, Kernel *kernel,
                                                  const cudaLaunchConfig_t *config) {
  const dim3 &grid = config->gridDim, &block = config->blockDim;
  const GgLaunch launch = {reinterpret_cast<const void *>(kernel), {grid.x, grid.y, grid.z},
                           {block.x, block.y, block.z}, config->dynamicSmemBytes, config->stream};
  return static_cast<cudaError_t>(gg_active_clusters(clusters, &launch));
}
template <typename... Parameters, typename... Values>
inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config,
                                      void (*kernel)(Parameters...), Values &&...values) {
  auto configured = gg_configure(kernel, config->gridDim, config->blockDim,
                                 config->dynamicSmemBytes, config->stream);
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const cudaLaunchAttribute &one = config->attrs[i];
    int value;
    __builtin_memcpy(&value, &one.val, sizeof value);
    if (value == 1) configured.launch.attributes |= 1u << one.id;
  }
  configured(values...);
  return cudaSuccess;
}

// Defined after the text.
extern "C" {
// Calls the launcher and returns its error.
int gg_call_launcher(const GgArgument *arguments, void *stream);
// Makes a launcher's arguments the kernel's; there is none if they are the same.
void gg_pass_arguments(GgArgument *arguments) __attribute__((weak));
// The text's kernel; whether the text has a launcher; the interface's bytes of shared memory.
extern const void *const gg_kernel;
extern const bool gg_has_launcher;
extern const unsigned gg_dynamic_shared, gg_static_shared;
// The blocks of a multiprocessor in the kernel's launch bounds, or 1.
extern const unsigned gg_resident_blocks;
// The blocks of its clusters, or 1.
extern const unsigned gg_cluster_blocks;
}

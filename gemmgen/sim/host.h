// What a kernel's text needs to be C++ for the host: CUDA's keywords, variables and functions.  It
// includes nothing, so that a kernel compiles quickly.
#pragma once

#define __global__ __attribute__((noinline))
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)

// All fibers of a block run in one thread of the host, so that they share what is thread_local.  It
// may stand inside a function and, for dynamic shared memory, behind `extern`; it is one segment,
// which the runner finds and fills with NaN before each block.
#define __shared__ thread_local

// CUDA allows `__shared__ alignas(16) float x[4];`, C++ has no alignas behind thread_local; g++'s
// attribute may stand there.
#define alignas(bytes) __attribute__((aligned(bytes)))

// The line tells barriers apart, and names them in reports.
#define __syncthreads() gg_barrier(__LINE__)
extern "C" void gg_barrier(int line);

#define __syncthreads_or(predicate) gg_barrier_or(predicate, __LINE__)
extern "C" int gg_barrier_or(int predicate, int line);

// Of several blocks: what one wrote before a barrier before gg_count_in is seen by those that count
// on the same counter later, behind a barrier.  gg_add and CUDA's own atomic functions are
// undivided, and order nothing.
extern "C" unsigned gg_count_in(unsigned *counter, unsigned last);
void gg_add(float *target, float value);
void gg_add(double *target, double value);
extern "C" unsigned atomicInc(unsigned *counter, unsigned last);

#define __syncwarp() gg_warp_barrier(__LINE__)
extern "C" void gg_warp_barrier(int line);

// Deposits the lane's bytes and, when all lanes of its warp have done so, returns where lane 0's
// are; those of the next lane are GG_DEPOSIT bytes on.  They stay until the lane meets its warp
// twice more.
#define GG_DEPOSIT 128
extern "C" const unsigned char *gg_exchange(const void *bytes, unsigned size, int line);
extern "C" void gg_warp_multiply(float *sum, const unsigned *a, const unsigned *b, bool is_f16,
                                 bool a_by_rows, bool b_by_rows, int line);
extern "C" void gg_begin_fragment(const void *first, long long pitch, int line);

struct GgIndex {
  unsigned x, y, z;
};
#ifndef GG_RUNNER  // which sets them
extern const GgIndex threadIdx, blockIdx, blockDim, gridDim;
#endif

union GgArgument {
  int integer;
  long long wide;
  float real;
  double precise;
  void *pointer;
};
// Defined behind the kernel's text: calls the kernel with its arguments.
extern "C" void gg_call_kernel(const GgArgument *arguments);

struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) double2 {
  double x, y;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

extern "C" {
float fmaf(float, float, float);
float fmaxf(float, float);
float fminf(float, float);
float fabsf(float);
float sqrtf(float);
float rintf(float);
float roundf(float);
float floorf(float);
float ceilf(float);
float truncf(float);
float copysignf(float, float);
float expf(float);
float exp2f(float);
float expm1f(float);
float logf(float);
float log1pf(float);
float powf(float, float);
float tanhf(float);
float erff(float);
float sinf(float);
float cosf(float);
double fma(double, double, double);
double fabs(double);
double sqrt(double);
double rint(double);
double exp(double);
double tanh(double);
double erf(double);
}

#ifndef GG_RUNNER
inline unsigned gg_lane() { return (threadIdx.x + threadIdx.y * blockDim.x) % 32; }

// shfl.sync of all 32 lanes.  Of an offset the lower 5 bits count; where no lane is so far down,
// a lane gets its own value.
template <typename T>
inline T gg_value_of(T value, unsigned lane, int line) {
  T found;
  __builtin_memcpy(&found, gg_exchange(&value, sizeof value, line) + lane * GG_DEPOSIT, sizeof found);
  return found;
}
template <typename T>
inline T gg_shuffle_xor(T value, int lane_mask, int line = __builtin_LINE()) {
  return gg_value_of(value, gg_lane() ^ (static_cast<unsigned>(lane_mask) & 31), line);
}
template <typename T>
inline T gg_shuffle_down(T value, int delta, int line = __builtin_LINE()) {
  const unsigned lane = gg_lane() + (static_cast<unsigned>(delta) & 31);
  return gg_value_of(value, lane < 32 ? lane : gg_lane(), line);
}

// WMMA.  A lane holds half a line of a fragment: 8 of its 16 neighbours in memory; of sums, half a
// row.
struct alignas(16) GgHalfLine {
  unsigned words[4];
};
template <int registers>
inline void gg_wmma_load(unsigned (&fragment)[registers], const unsigned short *source, int pitch,
                         int line) {
  gg_begin_fragment(source, 2LL * pitch, line);
  const unsigned short *half = source + gg_lane() / 2 * pitch + gg_lane() % 2 * 8;
  const GgHalfLine read = *reinterpret_cast<const GgHalfLine *>(half);
  for (int i = 0; i < registers; ++i) fragment[i] = read.words[i % 4];
}
#define GG_WMMA_LOAD(side, layout, type, registers)                                             \
  inline void gg_wmma_load_##side##_##layout##_##type(unsigned (&fragment)[registers],          \
                                                      const unsigned short *source, int pitch,  \
                                                      int line = __builtin_LINE()) {            \
    gg_wmma_load(fragment, source, pitch, line);                                                \
  }
#define GG_WMMA_MULTIPLY(a_layout, b_layout, type, registers)                                   \
  inline void gg_wmma_multiply_##a_layout##_##b_layout##_##type(                                \
      float (&sum)[8], const unsigned (&a)[registers], const unsigned (&b)[registers],          \
      int line = __builtin_LINE()) {                                                            \
    constexpr bool is_f16 = registers == 8;                                                     \
    constexpr bool a_by_rows = #a_layout[0] == 'r', b_by_rows = #b_layout[0] == 'r';            \
    gg_warp_multiply(sum, a, b, is_f16, a_by_rows, b_by_rows, line);                            \
  }
#define GG_WMMA(type, registers)                     \
  GG_WMMA_LOAD(a, row, type, registers)              \
  GG_WMMA_LOAD(a, col, type, registers)              \
  GG_WMMA_LOAD(b, row, type, registers)              \
  GG_WMMA_LOAD(b, col, type, registers)              \
  GG_WMMA_MULTIPLY(row, row, type, registers)        \
  GG_WMMA_MULTIPLY(row, col, type, registers)        \
  GG_WMMA_MULTIPLY(col, row, type, registers)        \
  GG_WMMA_MULTIPLY(col, col, type, registers)
GG_WMMA(f16, 8)
GG_WMMA(bf16, 4)
inline void gg_wmma_store_row(float *target, const float (&sum)[8], int pitch,
                              int line = __builtin_LINE()) {
  gg_begin_fragment(target, 4LL * pitch, line);
  float *half = target + gg_lane() / 2 * pitch + gg_lane() % 2 * 8;
  for (int i = 0; i < 8; ++i) half[i] = sum[i];
}
inline void gg_wmma_store_col(float *target, const float (&sum)[8], int pitch,
                              int line = __builtin_LINE()) {
  gg_begin_fragment(target, 4LL * pitch, line);
  float *first = target + gg_lane() % 2 * 8 * pitch + gg_lane() / 2;
  for (int i = 0; i < 8; ++i) first[i * pitch] = sum[i];
}

#endif

// cp.async, of which copies.cpp keeps account.
extern "C" void gg_issue_copy(void *target, const void *source, int bytes, int valid);
extern "C" void gg_commit_group();
template <typename T> __forceinline__ const T *gg_base(const T *pointer) { return pointer; }
extern "C" void gg_await(int pending);
template <typename T> __forceinline__ void gg_copy_async_4(T *target, const T *source, int valid) {
  gg_issue_copy(target, source, 4, valid);
}
template <typename T> __forceinline__ void gg_copy_async_8(T *target, const T *source, int valid) {
  gg_issue_copy(target, source, 8, valid);
}
template <typename T> __forceinline__ void gg_copy_async_16(T *target, const T *source, int valid) {
  gg_issue_copy(target, source, 16, valid);
}
template <int pending> __forceinline__ void gg_wait_group() { gg_await(pending); }

#if defined(__x86_64__) && defined(__FMA__)
// g++ makes one instruction of -fmaf(a, b, c), which gives +0 where the text gives -0.
inline __attribute__((always_inline)) float gg_fused(float a, float b, float c) {
  float result = __builtin_fmaf(a, b, c);
  __asm__("" : "+x"(result));
  return result;
}
inline __attribute__((always_inline)) double gg_fused_f64(double a, double b, double c) {
  double result = __builtin_fma(a, b, c);
  __asm__("" : "+x"(result));
  return result;
}
#define fmaf gg_fused
#define fma gg_fused_f64
#endif

inline int min(int a, int b) { return b < a ? b : a; }
inline int max(int a, int b) { return a < b ? b : a; }
inline unsigned min(unsigned a, unsigned b) { return b < a ? b : a; }
inline unsigned max(unsigned a, unsigned b) { return a < b ? b : a; }
inline long long min(long long a, long long b) { return b < a ? b : a; }
inline long long max(long long a, long long b) { return a < b ? b : a; }
inline bool isnan(float x) { return __builtin_isnan(x); }
inline bool isinf(float x) { return __builtin_isinf(x); }
inline bool isfinite(float x) { return __builtin_isfinite(x); }

inline int __float_as_int(float x) {
  int bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}
inline float __int_as_float(int bits) {
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

// The conversions of f16 and bf16, whose results are NVIDIA's: to the nearest, ties to even, what is
// too large becomes infinity, and every NaN made here is the one with all bits of its significand.
inline float gg_from_bf16(unsigned short bits) {
  return __int_as_float(static_cast<int>(static_cast<unsigned>(bits) << 16));
}
inline unsigned short gg_to_bf16(float number) {
  const unsigned bits = static_cast<unsigned>(__float_as_int(number));
  if (number != number) return 0x7fff;
  return static_cast<unsigned short>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
inline float gg_from_f16(unsigned short bits) {
  const unsigned sign = (bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
  if (magnitude > 0x7c00) return __int_as_float(0x7fffffff);
  if (magnitude == 0x7c00) return __int_as_float(static_cast<int>(sign | 0x7f800000));
  if (magnitude >= 0x400) {  // the exponent's bias is 15, and 127 in a float
    return __int_as_float(static_cast<int>(sign | ((magnitude << 13) + (112u << 23))));
  }
  const float subnormal = static_cast<float>(magnitude) * 0x1p-24f;
  return __int_as_float(static_cast<int>(sign | static_cast<unsigned>(__float_as_int(subnormal))));
}
inline unsigned short gg_to_f16(float number) {
  const unsigned bits = static_cast<unsigned>(__float_as_int(number));
  const unsigned sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  unsigned half = 0x7c00;                                   // 65520 and more is nearer to infinity
  if (magnitude > 0x7f800000) return 0x7fff;
  if (magnitude < 0x38800000) {                             // below 2^-14: a multiple of 2^-24
    const float scaled = __int_as_float(static_cast<int>(magnitude)) + 0.5f;  // ulp(0.5) is 2^-24
    half = static_cast<unsigned>(__float_as_int(scaled)) - 0x3f000000;
  } else if (magnitude < 0x477ff000) {
    half = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
  }
  return static_cast<unsigned short>(sign | half);
}
template <typename T> inline T __ldg(const T *pointer) { return *pointer; }

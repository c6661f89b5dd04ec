// CUDA's keywords, variables and functions, so that an emitted text is C++ for the host.  Includes
// no system header, so that a text compiles quickly.
//
//   ptx.h         the PTX instructions of the text's gg_* functions
//   ptx_tma.h  those of TMA and of barriers in shared memory
//   ptx_wgmma.h   those of multiplications by warpgroups
//   runtime.h     the functions of the CUDA runtime that the launcher calls
#pragma once

#define __global__ __attribute__((noinline))
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __grid_constant__

// All fibers of a block run in one host thread, so they share its thread-local variables.  C++
// allows thread_local inside a function and, for dynamic shared memory, after `extern`; the
// variables form one segment, which the runner finds and fills with NaN before each block.
#define __shared__ thread_local

// CUDA allows `__shared__ alignas(16) float x[4];`; C++ allows no alignas after thread_local, but
// g++'s attribute is accepted there.
#define alignas(bytes) __attribute__((aligned(bytes)))

// The line tells barriers apart, and names them in reports.
#define __syncthreads() gg_barrier(__LINE__)
extern "C" void gg_barrier(int line);

#define __syncthreads_or(predicate) gg_barrier_or(predicate, __LINE__)
extern "C" int gg_barrier_or(int predicate, int line);

// Atomic and relaxed.
extern "C" unsigned atomicInc(unsigned *counter, unsigned last);

#define __syncwarp() gg_warp_barrier(__LINE__)
extern "C" void gg_warp_barrier(int line);

struct GgIndex {
  unsigned x, y, z;
};
#ifndef GG_RUNNER  // the runner sets them
extern const GgIndex threadIdx, blockIdx, blockDim, gridDim;
#endif

union GgArgument {
  int integer;
  long long wide;
  float real;
  double precise;
  void *pointer;
};
// Defined after the kernel's text: calls the kernel with its arguments.
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
struct alignas(8) int2 {
  int x, y;
};
struct alignas(16) int4 {
  int x, y, z, w;
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

#if defined(__x86_64__) && defined(__FMA__) && !defined(GG_RUNNER)
// g++ contracts -fmaf(a, b, c) into one instruction that gives +0 for the text's -0.
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

template <typename T> inline T __ldg(const T *pointer) { return *pointer; }

#include "ptx.h"
#ifndef GG_RUNNER
#ifndef GG_NO_TMA
#include "ptx_tma.h"
#endif
#include "ptx_policies.h"
#ifndef GG_NO_WGMMA
#include "ptx_wgmma.h"
#endif
#endif
#include "runtime.h"

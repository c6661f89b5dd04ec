// What a host program calls of CUDA's runtime, on this machine: memory is memory, and whatever is
// between two events takes 50 ms.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <cstring>

enum cudaError_t {
  cudaSuccess,
  cudaErrorInvalidValue,
  cudaErrorMemoryAllocation,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorMisalignedAddress = 716,
  cudaErrorNotSupported = 801
};
enum cudaDriverEntryPointQueryResult { cudaDriverEntryPointSuccess };
constexpr unsigned long long cudaEnableDefault = 0;
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost };
enum cudaDataType_t { CUDA_R_32F, CUDA_R_64F, CUDA_R_16F, CUDA_R_16BF = 14 };
using cudaEvent_t = int;
using cudaStream_t = void *;
struct cudaDeviceProp { char name[256]; };
struct dim3 {
  unsigned x, y, z;
  dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
enum cudaLaunchAttributeID { cudaLaunchAttributeProgrammaticStreamSerialization = 6 };
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  struct { int programmaticStreamSerializationAllowed; } val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute *attrs;
  unsigned numAttrs;
};

inline const char *cudaGetErrorString(cudaError_t error) { return error ? "an error" : "no error"; }
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
constexpr int cudaDevAttrMultiProcessorCount = 16;
inline cudaError_t cudaGetDevice(int *device) { return *device = 0, cudaSuccess; }
inline cudaError_t cudaDeviceGetAttribute(int *value, int, int) { return *value = 2, cudaSuccess; }
#define cudaOccupancyMaxActiveClusters(clusters, kernel, config) (*(clusters) = 2, cudaSuccess)
#define cudaFuncSetAttribute(kernel, attribute, bytes) cudaSuccess
// A tensor map: an address, sizes, and from the sixth word on strides.
inline int encoded_map(unsigned long long *words, int, unsigned rank, void *address,
                       const unsigned long long *sizes, const unsigned long long *strides,
                       const unsigned *, const unsigned *, int, int, int, int) {
  words[0] = reinterpret_cast<size_t>(address);
  for (unsigned i = 0; i < rank; ++i) words[1 + i] = sizes[i];
  for (unsigned i = 1; i < rank; ++i) words[5 + i] = strides[i - 1];
  return 0;
}
inline cudaError_t cudaGetDriverEntryPointByVersion(const char *, void **function, unsigned,
                                                    unsigned long long,
                                                    cudaDriverEntryPointQueryResult *found) {
  *function = reinterpret_cast<void *>(encoded_map);
  *found = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
template <typename T> cudaError_t cudaMalloc(T **there, size_t bytes) {
  *there = static_cast<T *>(std::malloc(bytes));
  return *there ? cudaSuccess : cudaErrorMemoryAllocation;
}
inline cudaError_t cudaFree(void *there) { return std::free(there), cudaSuccess; }
inline cudaError_t cudaMemset(void *there, int value, size_t bytes) {
  return std::memset(there, value, bytes), cudaSuccess;
}
inline cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind) {
  return std::memcpy(to, from, bytes), cudaSuccess;
}
inline cudaError_t cudaEventCreate(cudaEvent_t *) { return cudaSuccess; }
inline cudaError_t cudaEventRecord(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t, cudaEvent_t) {
  return *ms = 50.0f, cudaSuccess;
}
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp *found, int) {
  return std::strcpy(found->name, "this CPU"), cudaSuccess;
}

// Numbers of 16 bits, as cuda_fp16.h and cuda_bf16.h have them: rounded to nearest, ties to even.
inline unsigned bits_of(float number) { unsigned bits; return std::memcpy(&bits, &number, 4), bits; }
inline float float_of(unsigned bits) { float number; return std::memcpy(&number, &bits, 4), number; }
struct __nv_bfloat16 {
  unsigned short bits = 0;
  __nv_bfloat16() = default;
  explicit __nv_bfloat16(double number) {
    const unsigned whole = bits_of(static_cast<float>(number));
    bits = static_cast<unsigned short>((whole + 0x7FFF + (whole >> 16 & 1)) >> 16);
  }
  operator float() const { return float_of(unsigned{bits} << 16); }
};
struct __half {
  unsigned short bits = 0;
  __half() = default;
  explicit __half(double number) {
    const _Float16 rounded = static_cast<_Float16>(number);
    std::memcpy(&bits, &rounded, 2);
  }
  operator float() const { _Float16 number; return std::memcpy(&number, &bits, 2), number; }
};

// Numbers of 8 bits, as cuda_fp8.h has them: rounded to nearest, ties to even, and saturated.
template <int digits, int bias> struct eight_bits {
  unsigned char bits = 0;
  eight_bits() = default;
  explicit eight_bits(double number) {
    constexpr int fraction = digits - 1;
    const double greatest = digits == 4 ? 448.0 : 57344.0;
    const double size = std::fmin(std::fabs(number), greatest);
    const int exponent = std::max(size > 0.0 ? std::ilogb(size) : 1 - bias, 1 - bias);
    const int whole = static_cast<int>(std::nearbyint(std::ldexp(size, fraction - exponent)));
    const int below = whole < (1 << fraction) ? 1 : 0;  // a subnormal has exponent bits 0
    bits = static_cast<unsigned char>(
        ((exponent + bias - below) << fraction) + whole - (below ? 0 : 1 << fraction));
    if (std::isnan(number)) bits = 0x7F;
    if (std::signbit(number)) bits |= 0x80;
  }
  explicit operator float() const {
    constexpr int fraction = digits - 1;
    const int exponent = (bits & 0x7F) >> fraction, rest = bits & ((1 << fraction) - 1);
    const int whole = exponent ? rest + (1 << fraction) : rest;
    const double size = std::ldexp(whole, (exponent ? exponent : 1) - bias - fraction);
    if ((bits & 0x7F) == 0x7F) return NAN;
    return static_cast<float>(bits & 0x80 ? -size : size);
  }
  explicit operator double() const { return static_cast<float>(*this); }
};
using __nv_fp8_e4m3 = eight_bits<4, 7>;
using __nv_fp8_e5m2 = eight_bits<3, 15>;

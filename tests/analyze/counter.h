// A kernel's text made to report its accesses: an independent count of what `gemmgen explain` tells.
#pragma once
#include <cmath>
#include <cstddef>

struct Index { int x, y; };
extern Index threadIdx, blockIdx;

// Memory that is watched; an access anywhere else is not counted.
void watch(const char *name, const void *base, std::size_t bytes, int element, bool shared);
void see(const void *address, int bytes, bool write, const void *statement);

// The trip of a loop: with its statement it tells which access of another thread is the same one.
struct Trip {
    explicit Trip(int value);
    ~Trip();
};

#define NOINLINE __attribute__((noinline))
#define STATEMENT __builtin_return_address(0)

template <typename T> struct Watched {
    T value;
    NOINLINE operator T() const { see(this, sizeof(T), false, STATEMENT); return value; }
    NOINLINE Watched &operator=(T other) {
        see(this, sizeof(T), true, STATEMENT);
        value = other;
        return *this;
    }
    NOINLINE Watched &operator=(const Watched &other) {
        see(&other, sizeof(T), false, STATEMENT);
        see(this, sizeof(T), true, STATEMENT);
        value = other.value;
        return *this;
    }
};

template <int BYTES> struct Wide {
    char values[BYTES];
    NOINLINE Wide &operator=(const Wide &other) {
        see(&other, BYTES, false, STATEMENT);
        see(this, BYTES, true, STATEMENT);
        for (int e = 0; e < BYTES; ++e) values[e] = other.values[e];
        return *this;
    }
};
using float2 = Wide<8>;
using float4 = Wide<16>;
using double2 = Wide<16>;
using uint2 = Wide<8>;
using uint4 = Wide<16>;
using Word = Wide<4>;  // what moves two halves

// The values do not matter.
inline float gg_from_f16(unsigned short bits) { return bits; }
inline float gg_from_bf16(unsigned short bits) { return bits; }
inline unsigned short gg_to_f16(float number) { return static_cast<unsigned short>(number != 0); }
inline unsigned short gg_to_bf16(float number) { return static_cast<unsigned short>(number != 0); }

// Asynchronous copies; a vector that is partly inside counts as a whole one.
inline void copy(void *target, const void *source, int bytes, int valid, const void *statement) {
    if (valid > 0) see(source, bytes, false, statement);
    see(target, bytes, true, statement);
}
NOINLINE inline void gg_copy_async_4(void *target, const void *source, int valid) {
    copy(target, source, 4, valid, STATEMENT);
}
NOINLINE inline void gg_copy_async_8(void *target, const void *source, int valid) {
    copy(target, source, 8, valid, STATEMENT);
}
NOINLINE inline void gg_copy_async_16(void *target, const void *source, int valid) {
    copy(target, source, 16, valid, STATEMENT);
}
inline void gg_commit_group() {}
template <int> void gg_wait_group() {}

// At -O0 each call of one is its own statement.
#define __device__
#define __forceinline__ inline __attribute__((always_inline))
template <int WIDTH, typename T, typename S> __forceinline__ void wide(T *target, const S *source) {
    using Vector = Wide<WIDTH * sizeof(T)>;
    *reinterpret_cast<Vector *>(target) = *reinterpret_cast<const Vector *>(source);
}
template <typename T, typename S> __forceinline__ void copy2(T *t, const S *s) { wide<2>(t, s); }
template <typename T, typename S> __forceinline__ void copy4(T *t, const S *s) { wide<4>(t, s); }
template <typename T, typename S> __forceinline__ void copy8(T *t, const S *s) { wide<8>(t, s); }

#define __global__
#define __launch_bounds__(...)
inline void __syncthreads() {}  // addresses do not depend on what is in memory

// The kernel on its arguments, once for the present thread; defined beside the kernel's text.
void launch_one();
int run(int grid, int x, int y);

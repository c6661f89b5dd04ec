// A kernel's text made to report its accesses: an independent count of what `gemmgen explain` tells.
#pragma once
#include <cmath>
#include <cstddef>

struct Index { int x, y; };
extern Index threadIdx, blockIdx;

// Memory that is watched; an access anywhere else is not counted.
void watch(const char *name, const void *base, std::size_t bytes, bool shared);
void see(const void *address, int width, bool write, const void *statement);

// The trip of a loop: with its statement it tells which access of another thread is the same one.
struct Trip {
    explicit Trip(int value);
    ~Trip();
};

#define NOINLINE __attribute__((noinline))
#define STATEMENT __builtin_return_address(0)

struct Watched {
    float value;
    NOINLINE operator float() const { see(this, 1, false, STATEMENT); return value; }
    NOINLINE Watched &operator=(float other) {
        see(this, 1, true, STATEMENT);
        value = other;
        return *this;
    }
    NOINLINE Watched &operator=(const Watched &other) {
        see(&other, 1, false, STATEMENT);
        see(this, 1, true, STATEMENT);
        value = other.value;
        return *this;
    }
};

template <int WIDTH> struct Wide {
    float values[WIDTH];
    NOINLINE Wide &operator=(const Wide &other) {
        see(&other, WIDTH, false, STATEMENT);
        see(this, WIDTH, true, STATEMENT);
        for (int e = 0; e < WIDTH; ++e) values[e] = other.values[e];
        return *this;
    }
};
using float2 = Wide<2>;
using float4 = Wide<4>;

// Asynchronous copies; a piece of which something exists is counted whole.
inline void copy(Watched *target, const Watched *source, int width, int valid, const void *at) {
    if (valid > 0) see(source, width, false, at);
    see(target, width, true, at);
    for (int e = 0; e < width; ++e) target[e].value = 4 * e < valid ? source[e].value : 0.0f;
}
NOINLINE inline void gg_copy_async_4(Watched *target, const Watched *source, int valid) {
    copy(target, source, 1, valid, STATEMENT);
}
NOINLINE inline void gg_copy_async_8(Watched *target, const Watched *source, int valid) {
    copy(target, source, 2, valid, STATEMENT);
}
NOINLINE inline void gg_copy_async_16(Watched *target, const Watched *source, int valid) {
    copy(target, source, 4, valid, STATEMENT);
}
inline void gg_commit_group() {}
template <int> void gg_wait_group() {}

#define __global__
#define __launch_bounds__(...)
inline void __syncthreads() {}  // addresses do not depend on what is in memory

// The kernel on its arguments, once for the present thread; defined beside the kernel's text.
void launch_one();
int run(int grid, int x, int y);

// product: C[m, n] = alpha * acc + beta * C[m, n], acc = sum over k of A[m, k] * B[k, n] (f32)
//
// Launches one of 3 kernels. Each is in kernels/, with its schedule and what it requires.
#include "mini.h"

#include <array>
#include <cmath>

cudaError_t launch_mini_product_1(int M, int N, int K, float alpha, const float *A, int lda,
    const float *B, int ldb, float beta, float *C, int ldc, cudaStream_t stream);
cudaError_t launch_mini_product_2(int M, int N, int K, float alpha, const float *A, int lda,
    const float *B, int ldb, float beta, float *C, int ldc, float *workspace, unsigned *arrived,
    cudaStream_t stream);
cudaError_t launch_mini_product_plain(int M, int N, int K, float alpha, const float *A, int lda,
    const float *B, int ldb, float beta, float *C, int ldc, cudaStream_t stream);

namespace {

constexpr int KERNELS = 3;
constexpr int PLAIN = KERNELS - 1;  // takes every call
constexpr long long COUNTERS = 65536;  // bytes at the beginning of the workspace

// Shapes, and the kernel that is launched near them: the fastest one there.
struct Known {
    int M, N, K, kernel;
};
constexpr Known known[] = {
    {64, 64, 8192, 1},  // estimated, 10 us
    {128, 64, 8192, 1},  // estimated, 10 us
    {512, 512, 512, 0},  // estimated, 10 us
};

// Bytes for partial results, after the counters.
long long partial_bytes(int kernel, int M, int N, int K)
{
    switch (kernel) {
    case 1: return ((M - 1) / 64 + 1LL) * ((N - 1) / 64 + 1LL) * 65536;
    default: return 0;
    }
}

long long counter_bytes(int kernel, int M, int N, int K)
{
    switch (kernel) {
    case 1: return ((M - 1) / 64 + 1LL) * ((N - 1) / 64 + 1LL) * 4;
    default: return 0;
    }
}

size_t workspace_of(int kernel, int M, int N, int K)
{
    const long long partial = partial_bytes(kernel, M, N, K);
    const bool counts = counter_bytes(kernel, M, N, K) > 0;
    return static_cast<size_t>(partial || counts ? COUNTERS + partial : 0);
}

// Where a shape is: the logarithms of its extents.
using Place = std::array<double, 3>;

Place place(int M, int N, int K)
{
    const auto log = [](int extent) { return std::log(extent > 1 ? extent : 1.0); };
    return {{log(M), log(N), log(K)}};
}

double distance(const Place &x, const Place &y)
{
    double sum = 0;
    for (size_t i = 0; i < x.size(); ++i) sum += std::fabs(x[i] - y[i]);
    return sum;
}

// The kernel of the nearest known shape whose kernel was not tried.
int nearest(int M, int N, int K, const bool (&tried)[KERNELS])
{
    constexpr size_t COUNT = sizeof known / sizeof known[0];
    static const std::array<Place, COUNT> places = [] {
        std::array<Place, COUNT> found;
        for (size_t i = 0; i < COUNT; ++i)
            found[i] = place(known[i].M, known[i].N, known[i].K);
        return found;
    }();
    const Place here = place(M, N, K);
    int found = PLAIN;
    double least = INFINITY;
    for (size_t i = 0; i < COUNT; ++i) {
        const double far = distance(places[i], here);
        if (!tried[known[i].kernel] && far < least) found = known[i].kernel, least = far;
    }
    return found;
}

cudaError_t launch(int kernel, int M, int N, int K, float alpha, const float *A, int lda,
    const float *B, int ldb, float beta, float *C, int ldc, char *workspace, cudaStream_t stream)
{
    switch (kernel) {
    case 0:
        return launch_mini_product_1(M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, stream);
    case 1:
        return launch_mini_product_2(M, N, K, alpha, A, lda, B, ldb, beta, C, ldc,
            reinterpret_cast<float *>(workspace + 65536), reinterpret_cast<unsigned *>(workspace),
            stream);
    case 2:
        return launch_mini_product_plain(M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, stream);
    }
    return cudaErrorInvalidValue;
}

}  // namespace

extern "C" size_t mini_product_workspace(int M, int N, int K)
{
    const bool tried[KERNELS] = {};
    return workspace_of(nearest(M, N, K, tried), M, N, K);
}

extern "C" cudaError_t mini_product(int M, int N, int K, float alpha, const float *A, int lda,
    const float *B, int ldb, float beta, float *C, int ldc, void *workspace,
    size_t workspace_bytes, cudaStream_t stream)
{
    bool tried[KERNELS] = {};
    for (;;) {
        // A launcher checks what its kernel requires before it launches.
        const int kernel = nearest(M, N, K, tried);
        const bool fits = workspace_of(kernel, M, N, K) <= workspace_bytes &&
            counter_bytes(kernel, M, N, K) <= COUNTERS;
        const cudaError_t error = fits ?
            launch(kernel, M, N, K, alpha, A, lda, B, ldb, beta, C,
                ldc, static_cast<char *>(workspace), stream) :
            cudaErrorInvalidValue;
        const bool refused = error == cudaErrorInvalidValue || error == cudaErrorMisalignedAddress;
        if (!refused || kernel == PLAIN) return error;
        tried[kernel] = true;
    }
}

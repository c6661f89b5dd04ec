// gemm: C[m, n] = alpha * acc + beta * C[m, n], acc = sum over k of A[m, k] * B[k, n] (A e5m2, B
// e5m2, C e5m2, accumulators f32)
//
// schedule (defaults left out):
//     gemm            C[m, n] = A[m, k] * B[k, n]
//     dtype           A=e5m2 B=e5m2 C=e5m2
//     target          sm_89
// call (extents, leading dimensions: int; scalars: float; tensors: device pointers to unsigned char
// (e5m2 bits)):
//     launch_gemm(M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, stream)
// launch:
//     ceil(M / 8) * ceil(N / 32) blocks of 32 x 8 threads; none if C is empty
//     K = 0 if alpha == 0: as in BLAS, A and B are not read
// requires (leading dimensions count elements):
//     lda >= K, ldb >= N, ldc >= N
//     M <= 2147483623, N <= 2147483599, K <= 2147483630
//     C overlaps none of A, B

namespace gemm_detail {
// cvt.rn.f16x2.e5m2x2, cvt.f32.f16: e5m2 bits to float, exactly.
__device__ __forceinline__ float gg_from_e5m2(unsigned char bits) {
    float number;
    asm("{\n.reg .b32 pair;\n.reg .b16 low, high;\n"
        "cvt.rn.f16x2.e5m2x2 pair, %1;\nmov.b32 {low, high}, pair;\ncvt.f32.f16 %0, low;\n}"
        : "=f"(number) : "h"(static_cast<unsigned short>(bits)));
    return number;
}
// cvt.rn.satfinite.e5m2x2.f32: float to e5m2 bits, to nearest even, at most +-57344.
__device__ __forceinline__ unsigned char gg_to_e5m2(float number) {
    unsigned short pair;
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(number));
    return static_cast<unsigned char>(pair);
}

// ---- kernel ----
constexpr int BM = 8, BN = 32;  // threadblock tile of C

extern "C" __global__ void __launch_bounds__(BM * BN)
gemm(int M, int N, int K,
    float alpha, const unsigned char *__restrict__ A, int lda, const unsigned char *__restrict__ B,
    int ldb, float beta, unsigned char *__restrict__ C, int ldc)
{
    const int blocks_n = (N - 1) / BN + 1;
    const int m = (blockIdx.x / blocks_n) * BM + threadIdx.y;
    const int n = (blockIdx.x % blocks_n) * BN + threadIdx.x;
    if (m >= M || n >= N) return;

    // registers: accumulator
    float acc = 0.0f;

    // main loop along K
    for (int k = 0; k < K; ++k) {
        acc = fmaf(gg_from_e5m2(A[(long long)m * lda + k]),
            gg_from_e5m2(B[(long long)k * ldb + n]), acc);
    }

    // the epilogue
    const float old = beta != 0.0f ? gg_from_e5m2(C[(long long)m * ldc + n]) : 0.0f;
    C[(long long)m * ldc + n] = gg_to_e5m2(fmaf(beta, old, alpha * acc));
}

// ---- end of kernel ----
}  // namespace gemm_detail

#ifndef __CUDACC_RTC__
// Checks the requirements, then launches gemm on the stream.
cudaError_t launch_gemm(int M, int N, int K,
    float alpha, const unsigned char *A, int lda, const unsigned char *B, int ldb, float beta,
    unsigned char *C, int ldc, cudaStream_t stream)
{
    using namespace gemm_detail;
    if (M < 0 || N < 0 || K < 0 || M > 2147483623 || N > 2147483599 || K > 2147483630 || lda < K ||
        ldb < N || ldc < N)
        return cudaErrorInvalidValue;
    if (M == 0 || N == 0) return cudaSuccess;
    if (alpha == 0) K = 0;  // as in BLAS
    const long long blocks = ((M - 1) / BM + 1LL) * ((N - 1) / BN + 1LL);
    if (blocks > 2147483647) return cudaErrorInvalidConfiguration;
    gemm<<<static_cast<unsigned>(blocks), dim3(BN, BM), 0, stream>>>(
        M, N, K, alpha, A, lda, B, ldb, beta, C, ldc);
    return cudaGetLastError();
}
#endif

// gemm: C[m, n] = alpha * acc + beta * C[m, n], acc = sum over k of A[m, k] * B[k, n] (f32)
//
// schedule (defaults left out):
//     gemm            C[m, n] = A[m, k] * B[k, n]
//     bind            x=m y=n
// call (extents, leading dimensions: int; scalars: float; tensors: device pointers to float):
//     launch_gemm(M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, stream)
// launch:
//     ceil(M / 32) * ceil(N / 8) blocks of 32 x 8 threads; none if C is empty
//     K = 0 if alpha == 0: as in BLAS, A and B are not read
// requires (leading dimensions count elements):
//     lda >= K, ldb >= N, ldc >= N
//     M <= 2147483599, N <= 2147483623, K <= 2147483630
//     C overlaps none of A, B

namespace gemm_detail {
// ---- kernel ----
constexpr int BM = 32, BN = 8;  // threadblock tile of C

extern "C" __global__ void __launch_bounds__(BM * BN)
gemm(int M, int N, int K,
    float alpha, const float *__restrict__ A, int lda, const float *__restrict__ B, int ldb,
    float beta, float *__restrict__ C, int ldc)
{
    // the thread's element of C (bind)
    const int blocks_n = (N - 1) / BN + 1;
    const int m = (blockIdx.x / blocks_n) * BM + threadIdx.x;
    const int n = (blockIdx.x % blocks_n) * BN + threadIdx.y;
    if (m >= M || n >= N) return;

    // registers: accumulator
    float acc = 0.0f;

    // main loop along K
    for (int k = 0; k < K; ++k)
        acc = fmaf(A[(long long)m * lda + k], B[(long long)k * ldb + n], acc);

    // the epilogue
    const float old = beta != 0.0f ? C[(long long)m * ldc + n] : 0.0f;
    C[(long long)m * ldc + n] = fmaf(beta, old, alpha * acc);
}

// ---- end of kernel ----
}  // namespace gemm_detail

#ifndef __CUDACC_RTC__
// Checks the requirements, then launches gemm on the stream.
cudaError_t launch_gemm(int M, int N, int K,
    float alpha, const float *A, int lda, const float *B, int ldb, float beta, float *C, int ldc,
    cudaStream_t stream)
{
    using namespace gemm_detail;
    if (M < 0 || N < 0 || K < 0 || M > 2147483599 || N > 2147483623 || K > 2147483630 || lda < K ||
        ldb < N || ldc < N)
        return cudaErrorInvalidValue;
    if (M == 0 || N == 0) return cudaSuccess;
    if (alpha == 0) K = 0;  // as in BLAS
    const long long blocks = ((M - 1) / BM + 1LL) * ((N - 1) / BN + 1LL);
    if (blocks > 2147483647) return cudaErrorInvalidConfiguration;
    gemm<<<static_cast<unsigned>(blocks), dim3(BM, BN), 0, stream>>>(
        M, N, K, alpha, A, lda, B, ldb, beta, C, ldc);
    return cudaGetLastError();
}
#endif

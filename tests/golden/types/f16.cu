// gemm: C[m, n] = alpha * acc + beta * C[m, n], acc = sum over k of A[m, k] * B[k, n] (A f16, B
// f16, C f16, accumulators f32)
//
// schedule (defaults left out):
//     gemm            C[m, n] = A[m, k] * B[k, n]
//     dtype           A=f16 B=f16 C=f16
// call (extents, leading dimensions: int; scalars: float; tensors: device pointers to unsigned
// short (f16 bits)):
//     launch_gemm(M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, stream)
// launch:
//     ceil(M / 8) * ceil(N / 32) blocks of 32 x 8 threads; none if C is empty
//     K = 0 if alpha == 0: as in BLAS, A and B are not read
// requires (leading dimensions count elements):
//     lda >= K, ldb >= N, ldc >= N
//     M <= 2147483623, N <= 2147483599, K <= 2147483630
//     C overlaps none of A, B

namespace gemm_detail {
// cvt.f32.f16: f16 bits to float, exactly.
__device__ __forceinline__ float gg_from_f16(unsigned short bits)
{ float number; asm("cvt.f32.f16 %0, %1;" : "=f"(number) : "h"(bits)); return number; }
// cvt.rn.f16.f32: float to f16 bits, rounded to nearest even.
__device__ __forceinline__ unsigned short gg_to_f16(float number)
{ unsigned short bits; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(number)); return bits; }

// ---- kernel ----
constexpr int BM = 8, BN = 32;  // threadblock tile of C

extern "C" __global__ void __launch_bounds__(BM * BN)
gemm(int M, int N, int K,
    float alpha, const unsigned short *__restrict__ A, int lda,
    const unsigned short *__restrict__ B, int ldb, float beta, unsigned short *__restrict__ C,
    int ldc)
{
    const int blocks_n = (N - 1) / BN + 1;
    const int m = (blockIdx.x / blocks_n) * BM + threadIdx.y;
    const int n = (blockIdx.x % blocks_n) * BN + threadIdx.x;
    if (m >= M || n >= N) return;

    // registers: accumulator
    float acc = 0.0f;

    // main loop along K
    for (int k = 0; k < K; ++k) {
        acc = fmaf(gg_from_f16(A[(long long)m * lda + k]), gg_from_f16(B[(long long)k * ldb + n]),
            acc);
    }

    // the epilogue
    const float old = beta != 0.0f ? gg_from_f16(C[(long long)m * ldc + n]) : 0.0f;
    C[(long long)m * ldc + n] = gg_to_f16(fmaf(beta, old, alpha * acc));
}

// ---- end of kernel ----
}  // namespace gemm_detail

#ifndef __CUDACC_RTC__
// Checks the requirements, then launches gemm on the stream.
cudaError_t launch_gemm(int M, int N, int K,
    float alpha, const unsigned short *A, int lda, const unsigned short *B, int ldb, float beta,
    unsigned short *C, int ldc, cudaStream_t stream)
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

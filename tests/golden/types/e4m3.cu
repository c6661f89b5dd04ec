// gemm: C[m, n] = acc * sa * sb, acc = sum over k of A[m, k] * B[k, n] (A e4m3, B e4m3, C f32,
// accumulators f32)
//
// schedule (defaults left out):
//     gemm            C[m, n] = A[m, k] * B[k, n]
//     dtype           A=e4m3 B=e4m3
//     target          sm_89
//     fuse_epilogue   acc * sa * sb
// call (extents, leading dimensions: int; scalars: float; tensors: device pointers to unsigned char
// (e4m3 bits) for A, B, float for C):
//     launch_gemm(M, N, K, A, lda, B, ldb, C, ldc, sa, sb, stream)
// launch:
//     ceil(M / 8) * ceil(N / 32) blocks of 32 x 8 threads; none if C is empty
// requires (leading dimensions count elements):
//     lda >= K, ldb >= N, ldc >= N
//     M <= 2147483623, N <= 2147483599, K <= 2147483630
//     C overlaps none of A, B

namespace gemm_detail {
// cvt.rn.f16x2.e4m3x2, cvt.f32.f16: e4m3 bits to float, exactly.
__device__ __forceinline__ float gg_from_e4m3(unsigned char bits) {
    float number;
    asm("{\n.reg .b32 pair;\n.reg .b16 low, high;\n"
        "cvt.rn.f16x2.e4m3x2 pair, %1;\nmov.b32 {low, high}, pair;\ncvt.f32.f16 %0, low;\n}"
        : "=f"(number) : "h"(static_cast<unsigned short>(bits)));
    return number;
}

// ---- kernel ----
constexpr int BM = 8, BN = 32;  // threadblock tile of C

extern "C" __global__ void __launch_bounds__(BM * BN)
gemm(int M, int N, int K,
    const unsigned char *__restrict__ A, int lda, const unsigned char *__restrict__ B, int ldb,
    float *__restrict__ C, int ldc, float sa, float sb)
{
    const int blocks_n = (N - 1) / BN + 1;
    const int m = (blockIdx.x / blocks_n) * BM + threadIdx.y;
    const int n = (blockIdx.x % blocks_n) * BN + threadIdx.x;
    if (m >= M || n >= N) return;

    // registers: accumulator
    float acc = 0.0f;

    // main loop along K
    for (int k = 0; k < K; ++k) {
        acc = fmaf(gg_from_e4m3(A[(long long)m * lda + k]),
            gg_from_e4m3(B[(long long)k * ldb + n]), acc);
    }

    // the epilogue (fuse_epilogue)
    C[(long long)m * ldc + n] = acc * sa * sb;
}

// ---- end of kernel ----
}  // namespace gemm_detail

#ifndef __CUDACC_RTC__
// Checks the requirements, then launches gemm on the stream.
cudaError_t launch_gemm(int M, int N, int K,
    const unsigned char *A, int lda, const unsigned char *B, int ldb, float *C, int ldc,
    float sa, float sb, cudaStream_t stream)
{
    using namespace gemm_detail;
    if (M < 0 || N < 0 || K < 0 || M > 2147483623 || N > 2147483599 || K > 2147483630 || lda < K ||
        ldb < N || ldc < N)
        return cudaErrorInvalidValue;
    if (M == 0 || N == 0) return cudaSuccess;
    const long long blocks = ((M - 1) / BM + 1LL) * ((N - 1) / BN + 1LL);
    if (blocks > 2147483647) return cudaErrorInvalidConfiguration;
    gemm<<<static_cast<unsigned>(blocks), dim3(BN, BM), 0, stream>>>(
        M, N, K, A, lda, B, ldb, C, ldc, sa, sb);
    return cudaGetLastError();
}
#endif

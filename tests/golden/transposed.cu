// gemm: C[m, n] = alpha * acc + beta * C[m, n], acc = sum over k of A[m, k] * B[k, n] (f32)
//
// schedule (defaults left out):
//     gemm            C[m, n] = A[m, k] * B[k, n]
//     tile            m=32 n=32 k=32
//     cache_shared    A[k, m] B[k, n]
// call (extents, leading dimensions: int; scalars: float; tensors: device pointers to float):
//     launch_gemm(M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, stream)
// launch:
//     ceil(M / 32) * ceil(N / 32) blocks of 32 x 32 threads; none if C is empty
//     K = 0 if alpha == 0: as in BLAS, A and B are not read
// requires (leading dimensions count elements):
//     lda >= K, ldb >= N, ldc >= N
//     M <= 2147483599, N <= 2147483599, K <= 2147483599
//     C overlaps none of A, B

namespace gemm_detail {
// ---- kernel ----
constexpr int BM = 32, BN = 32, BK = 32;  // threadblock tile of C, and its step along K
constexpr int THREADS = BM * BN;
static_assert(THREADS == BM * BK && THREADS == BK * BN, "the threads copy whole tiles");
static_assert(THREADS <= 1024, "a block has at most 1024 threads");

extern "C" __global__ void __launch_bounds__(THREADS)
gemm(int M, int N, int K,
    float alpha, const float *__restrict__ A, int lda, const float *__restrict__ B, int ldb,
    float beta, float *__restrict__ C, int ldc)
{
    // tiles in shared memory (cache_shared)
    __shared__ alignas(16) float A_shared[BK][BM];
    __shared__ alignas(16) float B_shared[BK][BN];
    static_assert(sizeof(A_shared) + sizeof(B_shared) <= 48 * 1024, "static shared memory: 48 KiB");

    // the block's tile of C (tile)
    const int blocks_n = (N - 1) / BN + 1;
    const int tile_m = (blockIdx.x / blocks_n) * BM;
    const int tile_n = (blockIdx.x % blocks_n) * BN;

    // the thread's position in it (tile)
    const int tid = threadIdx.y * BN + threadIdx.x;
    const int thread_m = threadIdx.y, thread_n = threadIdx.x;

    // first element of A and B that this thread copies
    const int A_m = tid / BK, A_k = tid % BK;
    const int B_k = tid / BN, B_n = tid % BN;

    // registers: accumulator
    float acc = 0.0f;

    // main loop over tiles along K
    for (int tile_k = 0; tile_k < K; tile_k += BK) {
        // load this step's tiles (cache_shared)
        {
            const int m = tile_m + A_m, k = tile_k + A_k;
            A_shared[A_k][A_m] = m < M && k < K ? A[(long long)m * lda + k] : 0.0f;
        }
        {
            const int k = tile_k + B_k, n = tile_n + B_n;
            B_shared[B_k][B_n] = k < K && n < N ? B[(long long)k * ldb + n] : 0.0f;
        }
        __syncthreads();

        // multiply the tile
        #pragma unroll 8
        for (int k = 0; k < BK; ++k)
            acc = fmaf(A_shared[k][thread_m], B_shared[k][thread_n], acc);
        __syncthreads();
    }

    // the epilogue
    const int m = tile_m + thread_m, n = tile_n + thread_n;
    if (m < M && n < N) {
        const float old = beta != 0.0f ? C[(long long)m * ldc + n] : 0.0f;
        C[(long long)m * ldc + n] = fmaf(beta, old, alpha * acc);
    }
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
    if (M < 0 || N < 0 || K < 0 || M > 2147483599 || N > 2147483599 || K > 2147483599 || lda < K ||
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

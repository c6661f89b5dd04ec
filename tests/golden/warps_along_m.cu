// gemm: C[n, m] = alpha * acc + beta * C[n, m], acc = sum over k of A[m, k] * B[k, n] (f32)
//
// schedule (defaults left out):
//     gemm            C[n, m] = A[m, k] * B[k, n]
//     tile            m=32 n=48 k=4
//     cache_shared    A[k, m] B[k, n]
//     warp_tile       m=16 n=24
//     register_block  m=4 n=3 interleave=1
// call (extents, leading dimensions: int; scalars: float; tensors: device pointers to float):
//     launch_gemm(M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, stream)
// launch:
//     ceil(M / 32) * ceil(N / 48) blocks of 128 threads; none if C is empty
//     K = 0 if alpha == 0: as in BLAS, A and B are not read
// requires (leading dimensions count elements):
//     lda >= K, ldb >= N, ldc >= M
//     M <= 2147483599, N <= 2147483583, K <= 2147483627
//     C overlaps none of A, B

namespace gemm_detail {
// ---- kernel ----
constexpr int BM = 32, BN = 48, BK = 4;  // threadblock tile of C, and its step along K
constexpr int WM = 16, WN = 24;  // warp tile
constexpr int TM = 4, TN = 3;  // micro-tile of a thread
constexpr int LM = WM / TM, LN = WN / TN;  // threads along each side of a warp
constexpr int THREADS = (BM / WM) * (BN / WN) * 32;
constexpr int B_VECTORS = (BK * BN - 1) / THREADS + 1;  // a thread's copies of a tile
static_assert(WM % TM == 0 && WN % TN == 0, "the micro-tiles fill the tile");
static_assert(LM * LN == 32, "a warp's threads fill its tile");
static_assert(THREADS == BM * BK, "the threads copy whole tiles");
static_assert(THREADS <= 1024, "a block has at most 1024 threads");

extern "C" __global__ void __launch_bounds__(THREADS, 2)
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

    // the thread's position in it (tile; warp_tile; register_block)
    const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    const int thread_m = (warp % (BM / WM)) * WM + lane % LM;
    const int thread_n = (warp / (BM / WM)) * WN + lane / LM;

    // first element of A and B that this thread copies
    const int A_m = tid / BK, A_k = tid % BK;

    // registers: operand fragments, accumulators
    float A_frag[TM], B_frag[TN];
    float acc[TM][TN] = {};

    // main loop over tiles along K
    for (int tile_k = 0; tile_k < K; tile_k += BK) {
        // load this step's tiles (cache_shared)
        {
            const int m = tile_m + A_m, k = tile_k + A_k;
            A_shared[A_k][A_m] = m < M && k < K ? A[(long long)m * lda + k] : 0.0f;
        }
        #pragma unroll
        for (int vector = 0; vector < B_VECTORS; ++vector) {
            const int B_vector = tid + vector * THREADS, B_k = B_vector / BN;
            const int B_n = B_vector % BN;
            if (B_k < BK) {
                const int k = tile_k + B_k, n = tile_n + B_n;
                B_shared[B_k][B_n] = k < K && n < N ? B[(long long)k * ldb + n] : 0.0f;
            }
        }
        __syncthreads();

        // multiply the tile (register_block)
        #pragma unroll
        for (int k = 0; k < BK; ++k) {
            #pragma unroll
            for (int reg_m = 0; reg_m < TM; ++reg_m)
                A_frag[reg_m] = A_shared[k][thread_m + reg_m * LM];
            #pragma unroll
            for (int reg_n = 0; reg_n < TN; ++reg_n)
                B_frag[reg_n] = B_shared[k][thread_n + reg_n * LN];
            #pragma unroll
            for (int reg_m = 0; reg_m < TM; ++reg_m) {
                #pragma unroll
                for (int reg_n = 0; reg_n < TN; ++reg_n)
                    acc[reg_m][reg_n] = fmaf(A_frag[reg_m], B_frag[reg_n], acc[reg_m][reg_n]);
            }
        }
        __syncthreads();
    }

    // the epilogue
    #pragma unroll
    for (int reg_n = 0; reg_n < TN; ++reg_n) {
        const int n = tile_n + thread_n + reg_n * LN;
        if (n < N) {
            #pragma unroll
            for (int reg_m = 0; reg_m < TM; ++reg_m) {
                const int m = tile_m + thread_m + reg_m * LM;
                if (m < M) {
                    const float old = beta != 0.0f ? C[(long long)n * ldc + m] : 0.0f;
                    C[(long long)n * ldc + m] = fmaf(beta, old, alpha * acc[reg_m][reg_n]);
                }
            }
        }
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
    if (M < 0 || N < 0 || K < 0 || M > 2147483599 || N > 2147483583 || K > 2147483627 || lda < K ||
        ldb < N || ldc < M)
        return cudaErrorInvalidValue;
    if (M == 0 || N == 0) return cudaSuccess;
    if (alpha == 0) K = 0;  // as in BLAS
    const long long blocks = ((M - 1) / BM + 1LL) * ((N - 1) / BN + 1LL);
    if (blocks > 2147483647) return cudaErrorInvalidConfiguration;
    gemm<<<static_cast<unsigned>(blocks), THREADS, 0, stream>>>(
        M, N, K, alpha, A, lda, B, ldb, beta, C, ldc);
    return cudaGetLastError();
}
#endif

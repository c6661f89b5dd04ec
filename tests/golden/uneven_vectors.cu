// gemm: C[m, n] = alpha * acc + beta * C[m, n], acc = sum over k of A[m, k] * B[k, n] (f32)
//
// schedule (defaults left out):
//     gemm            C[m, n] = A[m, k] * B[k, n]
//     tile            m=24 n=32 k=12
//     cache_shared    A[k, m] B[n, k]
//     register_block  m=2 n=4
//     double_buffer   A B
// call (extents, leading dimensions: int; scalars: float; tensors: device pointers to float):
//     launch_gemm(M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, stream)
// launch:
//     ceil(M / 24) * ceil(N / 32) blocks of 8 x 12 threads; none if C is empty
//     K = 0 if alpha == 0: as in BLAS, A and B are not read
// requires (leading dimensions count elements):
//     lda >= K, ldb >= N, ldc >= N
//     M <= 2147483607, N <= 2147483599, K <= 2147483607
//     C overlaps none of A, B

namespace gemm_detail {
// ---- kernel ----
constexpr int BM = 24, BN = 32, BK = 12;  // threadblock tile of C, and its step along K
constexpr int TM = 2, TN = 4;  // micro-tile of a thread
constexpr int LM = BM / TM, LN = BN / TN;  // threads along each side of the block
constexpr int THREADS = LM * LN;
constexpr int A_STEP = THREADS / BK, B_STEP = THREADS / BN;  // rows between a thread's copies
constexpr int A_VECTORS = BM / A_STEP, B_VECTORS = BK / B_STEP;  // a thread's copies of a tile
static_assert(BM % TM == 0 && BN % TN == 0, "the micro-tiles fill the tile");
static_assert(THREADS % BK == 0 && A_VECTORS * A_STEP == BM, "the threads copy whole tiles of A");
static_assert(THREADS % BN == 0 && B_VECTORS * B_STEP == BK, "the threads copy whole tiles of B");
static_assert(THREADS <= 1024, "a block has at most 1024 threads");

extern "C" __global__ void __launch_bounds__(THREADS, 2)
gemm(int M, int N, int K,
    float alpha, const float *__restrict__ A, int lda, const float *__restrict__ B, int ldb,
    float beta, float *__restrict__ C, int ldc)
{
    // tiles in shared memory (cache_shared; double_buffer)
    __shared__ alignas(16) float A_shared[2][BK][BM];
    __shared__ alignas(16) float B_shared[2][BN][BK];
    static_assert(sizeof(A_shared) + sizeof(B_shared) <= 48 * 1024, "static shared memory: 48 KiB");

    // the block's tile of C (tile)
    const int blocks_n = (N - 1) / BN + 1;
    const int tile_m = (blockIdx.x / blocks_n) * BM;
    const int tile_n = (blockIdx.x % blocks_n) * BN;

    // the thread's position in it (tile; register_block)
    const int tid = threadIdx.y * LN + threadIdx.x;
    const int thread_m = threadIdx.y * TM, thread_n = threadIdx.x * TN;

    // first element of A and B that this thread copies
    const int A_m = tid / BK, A_k = tid % BK;
    const int B_k = tid / BN, B_n = tid % BN;

    // registers: operand fragments, accumulators, staging
    float A_frag[TM], B_frag[TN];
    float acc[TM][TN] = {};
    float A_next[A_VECTORS], B_next[B_VECTORS];

    // load the first tile (cache_shared)
    #pragma unroll
    for (int vector = 0; vector < A_VECTORS; ++vector) {
        const int m = tile_m + A_m + vector * A_STEP, k = A_k;
        A_shared[0][A_k][A_m + vector * A_STEP] = m < M && k < K ? A[(long long)m * lda + k] : 0.0f;
    }
    #pragma unroll
    for (int vector = 0; vector < B_VECTORS; ++vector) {
        const int k = B_k + vector * B_STEP, n = tile_n + B_n;
        B_shared[0][B_n][B_k + vector * B_STEP] = k < K && n < N ? B[(long long)k * ldb + n] : 0.0f;
    }
    int stage = 0;
    __syncthreads();

    // main loop over tiles along K
    for (int tile_k = 0; tile_k < K; tile_k += BK) {
        const int next_k = tile_k + BK, next_stage = 1 - stage;

        // load the next tile early (double_buffer)
        #pragma unroll
        for (int vector = 0; vector < A_VECTORS; ++vector) {
            const int m = tile_m + A_m + vector * A_STEP, k = next_k + A_k;
            A_next[vector] = m < M && k < K ? A[(long long)m * lda + k] : 0.0f;
        }
        #pragma unroll
        for (int vector = 0; vector < B_VECTORS; ++vector) {
            const int k = next_k + B_k + vector * B_STEP, n = tile_n + B_n;
            B_next[vector] = k < K && n < N ? B[(long long)k * ldb + n] : 0.0f;
        }

        // multiply the tile (register_block)
        #pragma unroll
        for (int k = 0; k < BK; ++k) {
            #pragma unroll
            for (int reg_m = 0; reg_m < TM; ++reg_m)
                A_frag[reg_m] = A_shared[stage][k][thread_m + reg_m];
            #pragma unroll
            for (int reg_n = 0; reg_n < TN; ++reg_n)
                B_frag[reg_n] = B_shared[stage][thread_n + reg_n][k];
            #pragma unroll
            for (int reg_m = 0; reg_m < TM; ++reg_m) {
                #pragma unroll
                for (int reg_n = 0; reg_n < TN; ++reg_n)
                    acc[reg_m][reg_n] = fmaf(A_frag[reg_m], B_frag[reg_n], acc[reg_m][reg_n]);
            }
        }

        // store the prefetched tile to shared memory (double_buffer)
        #pragma unroll
        for (int vector = 0; vector < A_VECTORS; ++vector)
            A_shared[next_stage][A_k][A_m + vector * A_STEP] = A_next[vector];
        #pragma unroll
        for (int vector = 0; vector < B_VECTORS; ++vector)
            B_shared[next_stage][B_n][B_k + vector * B_STEP] = B_next[vector];
        __syncthreads();
        stage = next_stage;
    }

    // the epilogue
    #pragma unroll
    for (int reg_m = 0; reg_m < TM; ++reg_m) {
        const int m = tile_m + thread_m + reg_m;
        if (m < M) {
            #pragma unroll
            for (int reg_n = 0; reg_n < TN; ++reg_n) {
                const int n = tile_n + thread_n + reg_n;
                if (n < N) {
                    const float old = beta != 0.0f ? C[(long long)m * ldc + n] : 0.0f;
                    C[(long long)m * ldc + n] = fmaf(beta, old, alpha * acc[reg_m][reg_n]);
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
    if (M < 0 || N < 0 || K < 0 || M > 2147483607 || N > 2147483599 || K > 2147483607 || lda < K ||
        ldb < N || ldc < N)
        return cudaErrorInvalidValue;
    if (M == 0 || N == 0) return cudaSuccess;
    if (alpha == 0) K = 0;  // as in BLAS
    const long long blocks = ((M - 1) / BM + 1LL) * ((N - 1) / BN + 1LL);
    if (blocks > 2147483647) return cudaErrorInvalidConfiguration;
    gemm<<<static_cast<unsigned>(blocks), dim3(LN, LM), 0, stream>>>(
        M, N, K, alpha, A, lda, B, ldb, beta, C, ldc);
    return cudaGetLastError();
}
#endif

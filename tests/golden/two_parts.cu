// gemm: C[m, n] = alpha * acc + beta * C[m, n], acc = sum over k of A[m, k] * B[k, n] (f32)
//
// schedule (defaults left out):
//     gemm            C[m, n] = A[m, k] * B[k, n]
//     tile            m=32 n=64 k=8
//     cache_shared    A[k, m] B[k, n]
//     register_block  m=4 n=8
//     double_buffer   A A.register B B.register
//     split_k         parts=2
// call (extents, leading dimensions: int; scalars: float; tensors: device pointers to float):
//     launch_gemm(M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, workspace, arrived, stream)
// launch:
//     ceil(M / 32) * ceil(N / 64) * 2 blocks of 8 x 8 threads; none if C is empty
//     K = 0 if alpha == 0: as in BLAS, A and B are not read
// requires (leading dimensions count elements):
//     lda >= K, ldb >= N, ldc >= N
//     M <= 2147483599, N <= 2147483567, K <= 2147483607
//     C overlaps none of A, B
//     workspace: ceil(M / 32) * ceil(N / 64) * 16384 bytes, aligned to 16 bytes
//     arrived: ceil(M / 32) * ceil(N / 64) * 4 bytes, zeros; each launch leaves zeros
//     concurrent launches need separate workspace and arrived

namespace gemm_detail {
// Copies 4 contiguous elements in one access.
__device__ __forceinline__ void copy4(float *target, const float *source)
{ *reinterpret_cast<float4 *>(target) = *reinterpret_cast<const float4 *>(source); }
// atom.inc: atomic increment that wraps to 0 after `last`; returns the old value.
// Acquire-release at GPU scope.
__device__ __forceinline__ unsigned gg_count_in(unsigned *counter, unsigned last) {
    unsigned before;
    asm volatile("atom.acq_rel.gpu.inc.u32 %0, [%1], %2;"
                 : "=r"(before) : "l"(counter), "r"(last) : "memory");
    return before;
}

// ---- kernel ----
constexpr int BM = 32, BN = 64, BK = 8;  // threadblock tile of C, and its step along K
constexpr int TM = 4, TN = 8;  // micro-tile of a thread
constexpr int LM = BM / TM, LN = BN / TN;  // threads along each side of the block
constexpr int VEC = 4;  // elements of a vector access
constexpr int PARTS = 2;  // blocks that split K of a tile
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
    float beta, float *__restrict__ C, int ldc, float *workspace, unsigned *arrived)
{
    // tiles in shared memory (cache_shared; double_buffer)
    __shared__ alignas(16) float A_shared[2][BK][BM];
    __shared__ alignas(16) float B_shared[2][BK][BN];
    static_assert(sizeof(A_shared) + sizeof(B_shared) <= 48 * 1024, "static shared memory: 48 KiB");

    // the block's tile of C and its range of k (tile; split_k)
    const int blocks_m = (M - 1) / BM + 1, blocks_n = (N - 1) / BN + 1;
    const int tiles = blocks_m * blocks_n;
    const int own_part = blockIdx.x / tiles, own_tile = blockIdx.x % tiles;
    const int tile_m = (own_tile / blocks_n) * BM;
    const int tile_n = (own_tile % blocks_n) * BN;
    const int steps_k = (K + BK - 1) / BK;
    const int chunk_k = ((steps_k + PARTS - 1) / PARTS) * BK;
    const int start_k = own_part * chunk_k;
    const int stop_k = start_k + chunk_k < K ? start_k + chunk_k : K;

    // the thread's position in it (tile; register_block)
    const int tid = threadIdx.y * LN + threadIdx.x;
    const int thread_m = threadIdx.y * TM, thread_n = threadIdx.x * TN;

    // first element of A and B that this thread copies
    const int A_m = tid / BK, A_k = tid % BK;
    const int B_k = tid / BN, B_n = tid % BN;

    // registers: operand fragments, accumulators, staging
    float A_frag[2][TM], B_frag[2][TN];
    alignas(16) float acc[TM][TN] = {};
    float A_next[A_VECTORS], B_next[B_VECTORS];

    // load the first tile (cache_shared)
    #pragma unroll
    for (int vector = 0; vector < A_VECTORS; ++vector) {
        const int m = tile_m + A_m + vector * A_STEP, k = start_k + A_k;
        A_shared[0][A_k][A_m + vector * A_STEP] =
            m < M && k < stop_k ? A[(long long)m * lda + k] : 0.0f;
    }
    #pragma unroll
    for (int vector = 0; vector < B_VECTORS; ++vector) {
        const int k = start_k + B_k + vector * B_STEP, n = tile_n + B_n;
        B_shared[0][B_k + vector * B_STEP][B_n] =
            k < stop_k && n < N ? B[(long long)k * ldb + n] : 0.0f;
    }
    int stage = 0;
    __syncthreads();

    // load the first fragments (double_buffer)
    #pragma unroll
    for (int reg_m = 0; reg_m < TM; ++reg_m)
        A_frag[0][reg_m] = A_shared[0][0][thread_m + reg_m];
    #pragma unroll
    for (int reg_n = 0; reg_n < TN; ++reg_n)
        B_frag[0][reg_n] = B_shared[0][0][thread_n + reg_n];

    // main loop over tiles along K
    for (int tile_k = start_k; tile_k < stop_k; tile_k += BK) {
        const int next_k = tile_k + BK, next_stage = 1 - stage;

        // load the next tile early (double_buffer)
        #pragma unroll
        for (int vector = 0; vector < A_VECTORS; ++vector) {
            const int m = tile_m + A_m + vector * A_STEP, k = next_k + A_k;
            A_next[vector] = m < M && k < stop_k ? A[(long long)m * lda + k] : 0.0f;
        }
        #pragma unroll
        for (int vector = 0; vector < B_VECTORS; ++vector) {
            const int k = next_k + B_k + vector * B_STEP, n = tile_n + B_n;
            B_next[vector] = k < stop_k && n < N ? B[(long long)k * ldb + n] : 0.0f;
        }

        // multiply the tile (register_block)
        #pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (k + 1 < BK) {
                #pragma unroll
                for (int reg_m = 0; reg_m < TM; ++reg_m)
                    A_frag[(k + 1) % 2][reg_m] = A_shared[stage][k + 1][thread_m + reg_m];
                #pragma unroll
                for (int reg_n = 0; reg_n < TN; ++reg_n)
                    B_frag[(k + 1) % 2][reg_n] = B_shared[stage][k + 1][thread_n + reg_n];
            } else {
                // store the prefetched tile to shared memory, then read ahead into it
                // (double_buffer)
                #pragma unroll
                for (int vector = 0; vector < A_VECTORS; ++vector)
                    A_shared[next_stage][A_k][A_m + vector * A_STEP] = A_next[vector];
                #pragma unroll
                for (int vector = 0; vector < B_VECTORS; ++vector)
                    B_shared[next_stage][B_k + vector * B_STEP][B_n] = B_next[vector];
                __syncthreads();
                #pragma unroll
                for (int reg_m = 0; reg_m < TM; ++reg_m)
                    A_frag[(k + 1) % 2][reg_m] = A_shared[next_stage][0][thread_m + reg_m];
                #pragma unroll
                for (int reg_n = 0; reg_n < TN; ++reg_n)
                    B_frag[(k + 1) % 2][reg_n] = B_shared[next_stage][0][thread_n + reg_n];
            }
            #pragma unroll
            for (int reg_m = 0; reg_m < TM; ++reg_m) {
                #pragma unroll
                for (int reg_n = 0; reg_n < TN; ++reg_n) {
                    acc[reg_m][reg_n] =
                        fmaf(A_frag[k % 2][reg_m], B_frag[k % 2][reg_n], acc[reg_m][reg_n]);
                }
            }
        }
        stage = next_stage;
    }

    // write this split's partial sums to the workspace (split_k)
    #pragma unroll
    for (int reg_m = 0; reg_m < TM; ++reg_m) {
        #pragma unroll
        for (int reg_n = 0; reg_n < TN; reg_n += VEC) {
            const int part_at = (reg_m * TN + reg_n) * THREADS + tid * VEC;
            copy4(&workspace[(long long)blockIdx.x * (BM * BN) + part_at], &acc[reg_m][reg_n]);
        }
    }

    // the last block to arrive reduces
    __syncthreads();
    const bool is_last =
        __syncthreads_or(tid == 0 && gg_count_in(&arrived[own_tile], PARTS - 1) == PARTS - 1);
    if (!is_last) return;

    // add the other split's partial sums (split_k)
    const int part_tile = own_tile + (1 - own_part) * tiles;
    #pragma unroll
    for (int reg_m = 0; reg_m < TM; ++reg_m) {
        #pragma unroll
        for (int reg_n = 0; reg_n < TN; reg_n += VEC) {
            const int part_at = (reg_m * TN + reg_n) * THREADS + tid * VEC;
            alignas(16) float part_sum[VEC];
            copy4(part_sum, &workspace[(long long)part_tile * (BM * BN) + part_at]);
            for (int e = 0; e < VEC; ++e) acc[reg_m][reg_n + e] += part_sum[e];
        }
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
    float *workspace, unsigned *arrived, cudaStream_t stream)
{
    using namespace gemm_detail;
    if (M < 0 || N < 0 || K < 0 || M > 2147483599 || N > 2147483567 || K > 2147483607 || lda < K ||
        ldb < N || ldc < N)
        return cudaErrorInvalidValue;
    if (reinterpret_cast<size_t>(workspace) % 16 != 0)
        return cudaErrorMisalignedAddress;
    if (M == 0 || N == 0) return cudaSuccess;
    if (alpha == 0) K = 0;  // as in BLAS
    const long long blocks = ((M - 1) / BM + 1LL) * ((N - 1) / BN + 1LL) * PARTS;
    if (blocks > 2147483647) return cudaErrorInvalidConfiguration;
    gemm<<<static_cast<unsigned>(blocks), dim3(LN, LM), 0, stream>>>(
        M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, workspace, arrived);
    return cudaGetLastError();
}
#endif

// gemm: C[m, n] = alpha * acc + beta * C[m, n], acc = sum over k of A[k, m] * B[k, n] (f32)
//
// schedule (defaults left out):
//     gemm            C[m, n] = A[k, m] * B[k, n]
//     tile            m=128 n=64 k=16
//     cache_shared    A[k, m] B[k, n]
//     warp_tile       m=64 n=32
//     register_block  m=8 n=8 order=serpentine
//     vectorize       A.shared B.shared width=4
//     double_buffer   A B stages=3
//     double_buffer   A.register B.register
//     async_copy      A B via=cp_async
//     residue         k=first
//     raster          group=8
// call (extents, leading dimensions: int; scalars: float; tensors: device pointers to float):
//     launch_gemm(M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, stream)
// launch:
//     ceil(M / 128) * ceil(N / 64) blocks of 128 threads; none if C is empty
//     K = 0 if alpha == 0: as in BLAS, A and B are not read
// requires (leading dimensions count elements):
//     lda >= M, ldb >= N, ldc >= N
//     M <= 2147483503, N <= 2147483567, K <= 2147483583
//     C overlaps none of A, B

namespace gemm_detail {
// Copies 4 contiguous elements in one access.
__device__ __forceinline__ void copy4(float *target, const float *source)
{ *reinterpret_cast<float4 *>(target) = *reinterpret_cast<const float4 *>(source); }

// cp.async.ca: asynchronous copy of 4 bytes from global to shared memory: `valid` bytes of
// the source, then zeros.
__device__ __forceinline__ void gg_copy_async_4(
    float *target, const float *source, int valid)
{
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(target));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                 :: "r"(to), "l"(source), "r"(valid) : "memory");
}

// Hides the pointer's origin from the optimizer, so that constant offsets stay immediate operands.
__device__ __forceinline__ const float *gg_base(const float *pointer) {
    asm("" : "+l"(pointer));
    return pointer;
}

// cp.async.commit_group: makes this thread's uncommitted cp.async copies one group.
__device__ __forceinline__ void gg_commit_group()
{ asm volatile("cp.async.commit_group;" ::: "memory"); }
// cp.async.wait_group: waits until at most the `pending` newest of this thread's groups are
// outstanding.
template <int pending> __device__ __forceinline__ void gg_wait_group()
{ asm volatile("cp.async.wait_group %0;" :: "n"(pending) : "memory"); }

// ---- kernel ----
constexpr int BM = 128, BN = 64, BK = 16;  // threadblock tile of C, and its step along K
constexpr int WM = 64, WN = 32;  // warp tile
constexpr int TM = 8, TN = 8;  // micro-tile of a thread
constexpr int PM = 4, PN = 4;  // in vectors of this many adjacent elements
constexpr int LM = WM / TM, LN = WN / TN;  // threads along each side of a warp
constexpr int VEC = 4;  // elements of a vector access
constexpr int STAGES = 3;  // tiles in shared memory
constexpr int GROUP = 8;  // block rows in a group
constexpr int THREADS = (BM / WM) * (BN / WN) * 32;
constexpr int A_ALONG = 32, B_ALONG = 32;  // threads along a row of a tile
constexpr int A_TURNS = BM / A_ALONG, B_TURNS = BN / B_ALONG;  // a thread's copies in a row
// rows between a thread's copies
constexpr int A_STEP = THREADS / A_ALONG, B_STEP = THREADS / B_ALONG;
constexpr int A_VECTORS = BK / A_STEP, B_VECTORS = BK / B_STEP;  // a thread's copies of a tile
static_assert(WM % TM == 0 && WN % TN == 0, "the micro-tiles fill the tile");
static_assert(LM * LN == 32, "a warp's threads fill its tile");
static_assert(THREADS % A_ALONG == 0 && A_VECTORS * A_STEP == BK,
    "the threads copy whole tiles of A");
static_assert(THREADS % B_ALONG == 0 && B_VECTORS * B_STEP == BK,
    "the threads copy whole tiles of B");
static_assert(THREADS <= 1024, "a block has at most 1024 threads");

extern "C" __global__ void __launch_bounds__(THREADS, 2)
gemm(int M, int N, int K,
    float alpha, const float *__restrict__ A, int lda, const float *__restrict__ B, int ldb,
    float beta, float *__restrict__ C, int ldc)
{
    // tiles in shared memory (cache_shared; double_buffer A B stages=3)
    __shared__ alignas(16) float A_shared[STAGES][BK][BM];
    __shared__ alignas(16) float B_shared[STAGES][BK][BN];
    static_assert(sizeof(A_shared) + sizeof(B_shared) <= 48 * 1024, "static shared memory: 48 KiB");

    // the block's tile of C (tile; raster)
    const int blocks_m = (M - 1) / BM + 1, blocks_n = (N - 1) / BN + 1;
    const int full_group = blocks_m < GROUP ? blocks_m : GROUP;
    const int group = (blockIdx.x / (full_group * blocks_n)) * full_group;
    const int group_rows = blocks_m - group < full_group ? blocks_m - group : full_group;
    const int tile_in_group = blockIdx.x % (full_group * blocks_n);
    const int tile_m = (group + tile_in_group % group_rows) * BM;
    const int tile_n = (tile_in_group / group_rows) * BN;

    // the thread's position in it (tile; warp_tile; register_block)
    const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    const int thread_m = (warp / (BN / WN)) * WM + (lane / LN) * PM;
    const int thread_n = (warp % (BN / WN)) * WN + (lane % LN) * PN;

    // first element of A and B that this thread copies
    const int A_k = tid / A_ALONG, A_m = tid % A_ALONG;
    const int B_k = tid / B_ALONG, B_n = tid % B_ALONG;

    // registers: operand fragments, accumulators
    alignas(16) float A_frag[2][TM], B_frag[2][TN];
    float acc[TM][TN] = {};

    // the partial tile comes first: it starts before k = 0 (residue)
    const int start_k = K % BK > 0 ? K % BK - BK : 0;

    // copy the first tiles (async_copy)
    for (int ahead = 0; ahead < STAGES - 1; ++ahead) {
        #pragma unroll
        for (int vector = 0; vector < A_VECTORS; ++vector) {
            const int k = start_k + ahead * BK + A_k + vector * A_STEP;
            const float *const A_vector = gg_base(&A[(long long)k * lda + tile_m + A_m]);
            #pragma unroll
            for (int along = 0; along < A_TURNS; ++along) {
                const int m = tile_m + A_m + along * A_ALONG;
                const int valid = k >= 0 && k < K && m < M ? 1 : 0;
                gg_copy_async_4(&A_shared[ahead][A_k + vector * A_STEP][A_m + along * A_ALONG],
                    &A_vector[along * A_ALONG], valid * sizeof(float));
            }
        }
        #pragma unroll
        for (int vector = 0; vector < B_VECTORS; ++vector) {
            const int k = start_k + ahead * BK + B_k + vector * B_STEP;
            const float *const B_vector = gg_base(&B[(long long)k * ldb + tile_n + B_n]);
            #pragma unroll
            for (int along = 0; along < B_TURNS; ++along) {
                const int n = tile_n + B_n + along * B_ALONG;
                const int valid = k >= 0 && k < K && n < N ? 1 : 0;
                gg_copy_async_4(&B_shared[ahead][B_k + vector * B_STEP][B_n + along * B_ALONG],
                    &B_vector[along * B_ALONG], valid * sizeof(float));
            }
        }
        gg_commit_group();
    }
    int stage = 0;
    gg_wait_group<STAGES - 2>();
    __syncthreads();

    // load the first fragments (double_buffer A.register B.register)
    #pragma unroll
    for (int reg_m = 0; reg_m < TM; reg_m += VEC)
        copy4(&A_frag[0][reg_m], &A_shared[0][0][thread_m + reg_m * LM]);
    #pragma unroll
    for (int reg_n = 0; reg_n < TN; reg_n += VEC)
        copy4(&B_frag[0][reg_n], &B_shared[0][0][thread_n + reg_n * LN]);

    // main loop over tiles along K
    for (int tile_k = start_k; tile_k < K; tile_k += BK) {
        const int next_k = tile_k + (STAGES - 1) * BK;
        const int write_stage = stage > 0 ? stage - 1 : STAGES - 1;

        // copy a tile ahead (async_copy)
        #pragma unroll
        for (int vector = 0; vector < A_VECTORS; ++vector) {
            const int k = next_k + A_k + vector * A_STEP;
            const float *const A_vector = gg_base(&A[(long long)k * lda + tile_m + A_m]);
            #pragma unroll
            for (int along = 0; along < A_TURNS; ++along) {
                const int m = tile_m + A_m + along * A_ALONG;
                const int valid = next_k < K && m < M ? 1 : 0;
                gg_copy_async_4(
                    &A_shared[write_stage][A_k + vector * A_STEP][A_m + along * A_ALONG],
                    &A_vector[along * A_ALONG], valid * sizeof(float));
            }
        }
        #pragma unroll
        for (int vector = 0; vector < B_VECTORS; ++vector) {
            const int k = next_k + B_k + vector * B_STEP;
            const float *const B_vector = gg_base(&B[(long long)k * ldb + tile_n + B_n]);
            #pragma unroll
            for (int along = 0; along < B_TURNS; ++along) {
                const int n = tile_n + B_n + along * B_ALONG;
                const int valid = next_k < K && n < N ? 1 : 0;
                gg_copy_async_4(
                    &B_shared[write_stage][B_k + vector * B_STEP][B_n + along * B_ALONG],
                    &B_vector[along * B_ALONG], valid * sizeof(float));
            }
        }
        gg_commit_group();

        // multiply the tile (register_block; vectorize)
        #pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (k + 1 < BK) {
                #pragma unroll
                for (int reg_m = 0; reg_m < TM; reg_m += VEC) {
                    copy4(&A_frag[(k + 1) % 2][reg_m],
                        &A_shared[stage][k + 1][thread_m + reg_m * LM]);
                }
                #pragma unroll
                for (int reg_n = 0; reg_n < TN; reg_n += VEC) {
                    copy4(&B_frag[(k + 1) % 2][reg_n],
                        &B_shared[stage][k + 1][thread_n + reg_n * LN]);
                }
            } else {
                // wait for the next tile, then read ahead into it
                // (double_buffer A.register B.register)
                stage = stage + 1 < STAGES ? stage + 1 : 0;
                gg_wait_group<STAGES - 2>();
                __syncthreads();
                #pragma unroll
                for (int reg_m = 0; reg_m < TM; reg_m += VEC)
                    copy4(&A_frag[(k + 1) % 2][reg_m], &A_shared[stage][0][thread_m + reg_m * LM]);
                #pragma unroll
                for (int reg_n = 0; reg_n < TN; reg_n += VEC)
                    copy4(&B_frag[(k + 1) % 2][reg_n], &B_shared[stage][0][thread_n + reg_n * LN]);
            }
            #pragma unroll
            for (int reg_m = 0; reg_m < TM; ++reg_m) {
                #pragma unroll
                for (int step_n = 0; step_n < TN; ++step_n) {
                    const int reg_n = reg_m % 2 == 0 ? step_n : TN - 1 - step_n;
                    acc[reg_m][reg_n] =
                        fmaf(A_frag[k % 2][reg_m], B_frag[k % 2][reg_n], acc[reg_m][reg_n]);
                }
            }
        }
    }

    // drain the outstanding cp.async groups
    gg_wait_group<0>();

    // the epilogue
    #pragma unroll
    for (int reg_m = 0; reg_m < TM; ++reg_m) {
        const int m = tile_m + thread_m + (reg_m / PM) * (PM * LM) + reg_m % PM;
        if (m < M) {
            #pragma unroll
            for (int reg_n = 0; reg_n < TN; ++reg_n) {
                const int n = tile_n + thread_n + (reg_n / PN) * (PN * LN) + reg_n % PN;
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
    if (M < 0 || N < 0 || K < 0 || M > 2147483503 || N > 2147483567 || K > 2147483583 || lda < M ||
        ldb < N || ldc < N)
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

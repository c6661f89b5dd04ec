// gemm: C[m, n] = alpha * acc + beta * C[m, n], acc = sum over k of A[k, m] * B[k, n] (f32)
//
// schedule (defaults left out):
//     gemm            C[m, n] = A[k, m] * B[k, n]
//     tile            m=128 n=256 k=8
//     cache_shared    A[k, m] B[k, n]
//     warp_tile       m=64 n=64
//     register_block  m=8 n=16
//     vectorize       A B C width=4
//     double_buffer   A B stages=4
//     double_buffer   A.register B.register
//     async_copy      A B via=cp_async
//     raster          group=8
//     l2              A evict=last
//     l2              B evict=first
// call (extents, leading dimensions: int; scalars: float; tensors: device pointers to float):
//     launch_gemm(M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, stream)
// launch:
//     ceil(M / 128) * ceil(N / 256) blocks of 256 threads; none if C is empty
//     K = 0 if alpha == 0: as in BLAS, A and B are not read
// requires (leading dimensions count elements):
//     lda >= M, ldb >= N, ldc >= N
//     M <= 2147483503, N <= 2147483375, K <= 2147483599
//     lda % 4 == 0, ldb % 4 == 0, ldc % 4 == 0
//     A, B, C aligned to 16 bytes
//     C overlaps none of A, B

namespace gemm_detail {
// Copies 4 contiguous elements in one access.
__device__ __forceinline__ void copy4(float *target, const float *source)
{ *reinterpret_cast<float4 *>(target) = *reinterpret_cast<const float4 *>(source); }
// createpolicy: an L2 eviction priority: copies with it are evicted first.
__device__ __forceinline__ unsigned long long gg_evict_first() {
    unsigned long long policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0;" : "=l"(policy));
    return policy;
}
// createpolicy: an L2 eviction priority: copies with it are evicted last.
__device__ __forceinline__ unsigned long long gg_evict_last() {
    unsigned long long policy;
    asm("createpolicy.fractional.L2::evict_last.b64 %0;" : "=l"(policy));
    return policy;
}

// cp.async.cg: asynchronous copy of 16 bytes from global to shared memory: `valid` bytes of
// the source, then zeros.
// `policy` is their L2 eviction priority.
__device__ __forceinline__ void gg_copy_async_16(
    float *target, const float *source, int valid, unsigned long long policy)
{
    unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(target));
    // all bytes in order: with a policy, ptxas must not fold a uniform part into the address
    asm("prmt.b32 %0, %0, %0, 0x3210;" : "+r"(to));
    asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2, %3;"
                 :: "r"(to), "l"(source), "r"(valid), "l"(policy) : "memory");
}

// cp.async.commit_group: makes this thread's uncommitted cp.async copies one group.
__device__ __forceinline__ void gg_commit_group()
{ asm volatile("cp.async.commit_group;" ::: "memory"); }
// cp.async.wait_group: waits until at most the `pending` newest of this thread's groups are
// outstanding.
template <int pending> __device__ __forceinline__ void gg_wait_group()
{ asm volatile("cp.async.wait_group %0;" :: "n"(pending) : "memory"); }

// ---- kernel ----
constexpr int BM = 128, BN = 256, BK = 8;  // threadblock tile of C, and its step along K
constexpr int WM = 64, WN = 64;  // warp tile
constexpr int TM = 8, TN = 16;  // micro-tile of a thread
constexpr int PM = 4, PN = 4;  // in vectors of this many adjacent elements
constexpr int LM = WM / TM, LN = WN / TN;  // threads along each side of a warp
constexpr int VEC = 4;  // elements of a vector access
constexpr int STAGES = 4;  // tiles in shared memory
constexpr int GROUP = 8;  // block rows in a group
constexpr int THREADS = (BM / WM) * (BN / WN) * 32;
constexpr int B_STEP = THREADS / (BN / VEC);  // rows between a thread's copies
constexpr int B_VECTORS = BK / B_STEP;  // a thread's copies of a tile
static_assert(WM % TM == 0 && WN % TN == 0, "the micro-tiles fill the tile");
static_assert(LM * LN == 32, "a warp's threads fill its tile");
static_assert(THREADS * VEC == BK * BM, "the threads copy whole tiles");
static_assert(THREADS % (BN / VEC) == 0 && B_VECTORS * B_STEP == BK,
    "the threads copy whole tiles of B");
static_assert(THREADS <= 1024, "a block has at most 1024 threads");

// starts this thread's copies of a tile of A; zeros outside the matrix (cache_shared; vectorize;
// async_copy; l2 A evict=last)
__device__ __forceinline__ void copy_A_tile(float (&A_shared)[BK][BM], const float *A, int lda,
    int K, int M, int tile_k, int tile_m, int A_k, int A_m)
{
    const int k = tile_k + A_k, m = tile_m + A_m;
    const int valid = k < K && m < M ? (M - m < VEC ? M - m : VEC) : 0;
    gg_copy_async_16(&A_shared[A_k][A_m], &A[(long long)k * lda + m], valid * sizeof(float),
        gg_evict_last());
}

// starts this thread's copies of a tile of B; zeros outside the matrix (cache_shared; vectorize;
// async_copy; l2 B evict=first)
__device__ __forceinline__ void copy_B_tile(float (&B_shared)[BK][BN], const float *B, int ldb,
    int K, int N, int tile_k, int tile_n, int B_k, int B_n)
{
    #pragma unroll
    for (int vector = 0; vector < B_VECTORS; ++vector) {
        const int k = tile_k + B_k + vector * B_STEP, n = tile_n + B_n;
        const int valid = k < K && n < N ? (N - n < VEC ? N - n : VEC) : 0;
        gg_copy_async_16(&B_shared[B_k + vector * B_STEP][B_n], &B[(long long)k * ldb + n],
            valid * sizeof(float), gg_evict_first());
    }
}

// copies the elements before `stop` of a vector whose first index is `first` (vectorize)
__device__ __forceinline__ void copy4(float *target, const float *source, int first, int stop) {
    if (first + VEC - 1 < stop) return copy4(target, source);
    for (int e = 0; e < VEC; ++e) if (first + e < stop) target[e] = source[e];
}

extern "C" __global__ void __launch_bounds__(THREADS)
gemm(int M, int N, int K,
    float alpha, const float *__restrict__ A, int lda, const float *__restrict__ B, int ldb,
    float beta, float *__restrict__ C, int ldc)
{
    // tiles in shared memory (cache_shared; double_buffer A B stages=4)
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

    // first vector of A and B that this thread copies
    const int A_k = tid / (BM / VEC), A_m = (tid % (BM / VEC)) * VEC;
    const int B_k = tid / (BN / VEC), B_n = (tid % (BN / VEC)) * VEC;

    // registers: operand fragments, accumulators
    alignas(16) float A_frag[2][TM], B_frag[2][TN];
    float acc[TM][TN] = {};

    // copy the first tiles (async_copy)
    for (int ahead = 0; ahead < STAGES - 1; ++ahead) {
        copy_A_tile(A_shared[ahead], A, lda, K, M, ahead * BK, tile_m, A_k, A_m);
        copy_B_tile(B_shared[ahead], B, ldb, K, N, ahead * BK, tile_n, B_k, B_n);
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
    for (int tile_k = 0; tile_k < K; tile_k += BK) {
        const int next_k = tile_k + (STAGES - 1) * BK;
        const int write_stage = stage > 0 ? stage - 1 : STAGES - 1;

        // copy a tile ahead (async_copy)
        copy_A_tile(A_shared[write_stage], A, lda, K, M, next_k, tile_m, A_k, A_m);
        copy_B_tile(B_shared[write_stage], B, ldb, K, N, next_k, tile_n, B_k, B_n);
        gg_commit_group();

        // multiply the tile (register_block)
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
                for (int reg_n = 0; reg_n < TN; ++reg_n) {
                    acc[reg_m][reg_n] =
                        fmaf(A_frag[k % 2][reg_m], B_frag[k % 2][reg_n], acc[reg_m][reg_n]);
                }
            }
        }
    }

    // drain the outstanding cp.async groups
    gg_wait_group<0>();

    // the epilogue (vectorize)
    #pragma unroll
    for (int reg_m = 0; reg_m < TM; ++reg_m) {
        const int m = tile_m + thread_m + (reg_m / PM) * (PM * LM) + reg_m % PM;
        if (m < M) {
            #pragma unroll
            for (int reg_n = 0; reg_n < TN; reg_n += VEC) {
                const int n = tile_n + thread_n + reg_n * LN;
                alignas(16) float out[VEC];
                alignas(16) float old[VEC] = {};
                if (beta != 0.0f) copy4(old, &C[(long long)m * ldc + n], n, N);
                for (int e = 0; e < VEC; ++e)
                    out[e] = fmaf(beta, old[e], alpha * acc[reg_m][reg_n + e]);
                copy4(&C[(long long)m * ldc + n], out, n, N);
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
    if (M < 0 || N < 0 || K < 0 || M > 2147483503 || N > 2147483375 || K > 2147483599 || lda < M ||
        ldb < N || ldc < N || lda % 4 != 0 || ldb % 4 != 0 || ldc % 4 != 0)
        return cudaErrorInvalidValue;
    if (reinterpret_cast<size_t>(A) % 16 != 0 || reinterpret_cast<size_t>(B) % 16 != 0 ||
        reinterpret_cast<size_t>(C) % 16 != 0)
        return cudaErrorMisalignedAddress;
    if (M == 0 || N == 0) return cudaSuccess;
    if (alpha == 0) K = 0;  // as in BLAS
    const long long blocks = ((M - 1) / BM + 1LL) * ((N - 1) / BN + 1LL);
    if (blocks > 2147483647) return cudaErrorInvalidConfiguration;
    gemm<<<static_cast<unsigned>(blocks), THREADS, 0, stream>>>(
        M, N, K, alpha, A, lda, B, ldb, beta, C, ldc);
    return cudaGetLastError();
}
#endif

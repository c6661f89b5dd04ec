// gemm: C[m, n] = alpha * acc + beta * C[m, n], acc = sum over k of A[k, m] * B[k, n] (f32)
//
// schedule (defaults left out):
//     gemm            C[m, n] = A[k, m] * B[k, n]
//     tile            m=128 n=128 k=8
//     cache_shared    A[k, m] B[k, n]
//     register_block  m=8 n=8
//     vectorize       A B C width=4
//     double_buffer   A B stages=3
//     async_copy      A B via=cp_async
//     raster          group=8
//     persistent
// call (extents, leading dimensions: int; scalars: float; tensors: device pointers to float):
//     launch_gemm(M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, stream)
// launch:
//     min(ceil(M / 128) * ceil(N / 128), 2 x multiprocessors) blocks of 16 x 16 threads
//     each walks over its share of the tiles; none if C is empty
//     K = 0 if alpha == 0: as in BLAS, A and B are not read
// requires (leading dimensions count elements):
//     lda >= M, ldb >= N, ldc >= N
//     M <= 2147483503, N <= 2147483503, K <= 2147483607
//     lda % 4 == 0, ldb % 4 == 0, ldc % 4 == 0
//     A, B, C aligned to 16 bytes
//     C overlaps none of A, B

namespace gemm_detail {
// Copies 4 contiguous elements in one access.
__device__ __forceinline__ void copy4(float *target, const float *source)
{ *reinterpret_cast<float4 *>(target) = *reinterpret_cast<const float4 *>(source); }

// cp.async.cg: asynchronous copy of 16 bytes from global to shared memory: `valid` bytes of
// the source, then zeros.
__device__ __forceinline__ void gg_copy_async_16(
    float *target, const float *source, int valid)
{
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(target));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(to), "l"(source), "r"(valid) : "memory");
}
// cp.async.commit_group: makes this thread's uncommitted cp.async copies one group.
__device__ __forceinline__ void gg_commit_group()
{ asm volatile("cp.async.commit_group;" ::: "memory"); }
// cp.async.wait_group: waits until at most the `pending` newest of this thread's groups are
// outstanding.
template <int pending> __device__ __forceinline__ void gg_wait_group()
{ asm volatile("cp.async.wait_group %0;" :: "n"(pending) : "memory"); }

// ---- kernel ----
constexpr int BM = 128, BN = 128, BK = 8;  // threadblock tile of C, and its step along K
constexpr int TM = 8, TN = 8;  // micro-tile of a thread
constexpr int PM = 4, PN = 4;  // in vectors of this many adjacent elements
constexpr int LM = BM / TM, LN = BN / TN;  // threads along each side of the block
constexpr int VEC = 4;  // elements of a vector access
constexpr int STAGES = 3;  // tiles in shared memory
constexpr int GROUP = 8;  // block rows in a group
constexpr int THREADS = LM * LN;
static_assert(BM % TM == 0 && BN % TN == 0, "the micro-tiles fill the tile");
static_assert(THREADS * VEC == BK * BM && THREADS * VEC == BK * BN, "the threads copy whole tiles");
static_assert(THREADS <= 1024, "a block has at most 1024 threads");

// starts this thread's copies of a tile of A; zeros outside the matrix (cache_shared; vectorize;
// async_copy)
__device__ __forceinline__ void copy_A_tile(float (&A_shared)[BK][BM], const float *A, int lda,
    int K, int M, int tile_k, int tile_m, int A_k, int A_m)
{
    const int k = tile_k + A_k, m = tile_m + A_m;
    const int valid = k < K && m < M ? (M - m < VEC ? M - m : VEC) : 0;
    gg_copy_async_16(&A_shared[A_k][A_m], &A[(long long)k * lda + m], valid * sizeof(float));
}

// starts this thread's copies of a tile of B; zeros outside the matrix (cache_shared; vectorize;
// async_copy)
__device__ __forceinline__ void copy_B_tile(float (&B_shared)[BK][BN], const float *B, int ldb,
    int K, int N, int tile_k, int tile_n, int B_k, int B_n)
{
    const int k = tile_k + B_k, n = tile_n + B_n;
    const int valid = k < K && n < N ? (N - n < VEC ? N - n : VEC) : 0;
    gg_copy_async_16(&B_shared[B_k][B_n], &B[(long long)k * ldb + n], valid * sizeof(float));
}

// copies the elements before `stop` of a vector whose first index is `first` (vectorize)
__device__ __forceinline__ void copy4(float *target, const float *source, int first, int stop) {
    if (first + VEC - 1 < stop) return copy4(target, source);
    for (int e = 0; e < VEC; ++e) if (first + e < stop) target[e] = source[e];
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
gemm(int M, int N, int K,
    float alpha, const float *__restrict__ A, int lda, const float *__restrict__ B, int ldb,
    float beta, float *__restrict__ C, int ldc)
{
    // tiles in shared memory (cache_shared; double_buffer)
    __shared__ alignas(16) float A_shared[STAGES][BK][BM];
    __shared__ alignas(16) float B_shared[STAGES][BK][BN];
    static_assert(sizeof(A_shared) + sizeof(B_shared) <= 48 * 1024, "static shared memory: 48 KiB");

    // the tiles of C
    const int blocks_m = (M - 1) / BM + 1, blocks_n = (N - 1) / BN + 1;
    const int tiles = blocks_m * blocks_n;

    // the thread's position in a tile (tile; register_block)
    const int tid = threadIdx.y * LN + threadIdx.x;
    const int thread_m = threadIdx.y * PM, thread_n = threadIdx.x * PN;

    // first vector of A and B that this thread copies
    const int A_k = tid / (BM / VEC), A_m = (tid % (BM / VEC)) * VEC;
    const int B_k = tid / (BN / VEC), B_n = (tid % (BN / VEC)) * VEC;

    // registers: operand fragments, accumulators
    alignas(16) float A_frag[TM], B_frag[TN];
    float acc[TM][TN];

    // each of the block's tiles (persistent)
    for (int own_tile = blockIdx.x; own_tile < tiles; own_tile += gridDim.x) {
        // the tile of C (tile; raster)
        const int full_group = blocks_m < GROUP ? blocks_m : GROUP;
        const int group = (own_tile / (full_group * blocks_n)) * full_group;
        const int group_rows = blocks_m - group < full_group ? blocks_m - group : full_group;
        const int tile_in_group = own_tile % (full_group * blocks_n);
        const int tile_m = (group + tile_in_group % group_rows) * BM;
        const int tile_n = (tile_in_group / group_rows) * BN;

        // zero the accumulators
        #pragma unroll
        for (int reg_m = 0; reg_m < TM; ++reg_m) {
            #pragma unroll
            for (int reg_n = 0; reg_n < TN; ++reg_n) acc[reg_m][reg_n] = 0.0f;
        }

        // copy the first tiles (async_copy)
        for (int ahead = 0; ahead < STAGES - 1; ++ahead) {
            copy_A_tile(A_shared[ahead], A, lda, K, M, ahead * BK, tile_m, A_k, A_m);
            copy_B_tile(B_shared[ahead], B, ldb, K, N, ahead * BK, tile_n, B_k, B_n);
            gg_commit_group();
        }
        int stage = 0;

        // main loop over tiles along K
        for (int tile_k = 0; tile_k < K; tile_k += BK) {
            gg_wait_group<STAGES - 2>();
            __syncthreads();
            const int next_k = tile_k + (STAGES - 1) * BK;
            const int write_stage = stage > 0 ? stage - 1 : STAGES - 1;

            // copy a tile ahead (async_copy)
            copy_A_tile(A_shared[write_stage], A, lda, K, M, next_k, tile_m, A_k, A_m);
            copy_B_tile(B_shared[write_stage], B, ldb, K, N, next_k, tile_n, B_k, B_n);
            gg_commit_group();

            // multiply the tile (register_block)
            #pragma unroll
            for (int k = 0; k < BK; ++k) {
                #pragma unroll
                for (int reg_m = 0; reg_m < TM; reg_m += VEC)
                    copy4(&A_frag[reg_m], &A_shared[stage][k][thread_m + reg_m * LM]);
                #pragma unroll
                for (int reg_n = 0; reg_n < TN; reg_n += VEC)
                    copy4(&B_frag[reg_n], &B_shared[stage][k][thread_n + reg_n * LN]);
                #pragma unroll
                for (int reg_m = 0; reg_m < TM; ++reg_m) {
                    #pragma unroll
                    for (int reg_n = 0; reg_n < TN; ++reg_n)
                        acc[reg_m][reg_n] = fmaf(A_frag[reg_m], B_frag[reg_n], acc[reg_m][reg_n]);
                }
            }
            stage = stage + 1 < STAGES ? stage + 1 : 0;
        }

        // drain the outstanding cp.async groups
        gg_wait_group<0>();

        // all warps are done with the stages of this tile
        __syncthreads();

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
    if (M < 0 || N < 0 || K < 0 || M > 2147483503 || N > 2147483503 || K > 2147483607 || lda < M ||
        ldb < N || ldc < N || lda % 4 != 0 || ldb % 4 != 0 || ldc % 4 != 0)
        return cudaErrorInvalidValue;
    if (reinterpret_cast<size_t>(A) % 16 != 0 || reinterpret_cast<size_t>(B) % 16 != 0 ||
        reinterpret_cast<size_t>(C) % 16 != 0)
        return cudaErrorMisalignedAddress;
    if (M == 0 || N == 0) return cudaSuccess;
    if (alpha == 0) K = 0;  // as in BLAS
    const long long tiles = ((M - 1) / BM + 1LL) * ((N - 1) / BN + 1LL);
    if (tiles > 1073741824) return cudaErrorInvalidConfiguration;
    // this thread's last launch: its device, and the multiprocessors of this
    static thread_local int ready = -1, multiprocessors = 0;
    int device = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess && device != ready) {
        ready = -1;
        error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
        if (error == cudaSuccess) ready = device;
    }
    if (error != cudaSuccess) return error;
    const long long blocks = tiles < 2 * multiprocessors ? tiles : 2 * multiprocessors;
    gemm<<<static_cast<unsigned>(blocks), dim3(LN, LM), 0, stream>>>(
        M, N, K, alpha, A, lda, B, ldb, beta, C, ldc);
    return cudaGetLastError();
}
#endif

// gemm: C[m, n] = alpha * acc + beta * C[m, n], acc = sum over k of A[m, k] * B[k, n] (f32)
//
// schedule (defaults left out):
//     gemm            C[m, n] = A[m, k] * B[k, n]
//     tile            m=64 n=64 k=16
//     cache_shared    A[k, m] B[k, n]
//     register_block  m=4 n=4
//     vectorize       A B C width=4
//     pad             A by=4
//     double_buffer   A B
//     split_k         parts=4
// call (extents, leading dimensions: int; scalars: float; tensors: device pointers to float):
//     launch_gemm(M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, workspace, arrived, stream)
// launch:
//     ceil(M / 64) * ceil(N / 64) * 4 blocks of 16 x 16 threads; none if C is empty
//     K = 0 if alpha == 0: as in BLAS, A and B are not read
// requires (leading dimensions count elements):
//     lda >= K, ldb >= N, ldc >= N
//     M <= 2147483567, N <= 2147483567, K <= 2147483551
//     lda % 4 == 0, ldb % 4 == 0, ldc % 4 == 0
//     A, B, C aligned to 16 bytes
//     C overlaps none of A, B
//     workspace: ceil(M / 64) * ceil(N / 64) * 65536 bytes, aligned to 16 bytes
//     arrived: ceil(M / 64) * ceil(N / 64) * 4 bytes, zeros; each launch leaves zeros
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
constexpr int BM = 64, BN = 64, BK = 16;  // threadblock tile of C, and its step along K
constexpr int TM = 4, TN = 4;  // micro-tile of a thread
constexpr int LM = BM / TM, LN = BN / TN;  // threads along each side of the block
constexpr int VEC = 4;  // elements of a vector access
constexpr int A_PAD = 4;  // padding elements of each row
constexpr int PARTS = 4;  // blocks that split K of a tile
constexpr int THREADS = LM * LN;
static_assert(BM % TM == 0 && BN % TN == 0, "the micro-tiles fill the tile");
static_assert(THREADS * VEC == BM * BK && THREADS * VEC == BK * BN, "the threads copy whole tiles");
static_assert(THREADS <= 1024, "a block has at most 1024 threads");

// loads a vector of A or B; zeros outside the matrix (cache_shared; vectorize)
__device__ __forceinline__ void load4(float *target, const float *X, int ldx, int rows, int cols,
    int i, int j)
{
    if (i < rows && j + VEC - 1 < cols) return copy4(target, &X[(long long)i * ldx + j]);
    for (int e = 0; e < VEC; ++e)
        target[e] = i < rows && j + e < cols ? X[(long long)i * ldx + j + e] : 0.0f;
}

// copies the elements before `stop` of a vector whose first index is `first` (vectorize)
__device__ __forceinline__ void copy4(float *target, const float *source, int first, int stop) {
    if (first + VEC - 1 < stop) return copy4(target, source);
    for (int e = 0; e < VEC; ++e) if (first + e < stop) target[e] = source[e];
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
gemm(int M, int N, int K,
    float alpha, const float *__restrict__ A, int lda, const float *__restrict__ B, int ldb,
    float beta, float *__restrict__ C, int ldc, float *workspace, unsigned *arrived)
{
    // tiles in shared memory (cache_shared; pad; double_buffer)
    __shared__ alignas(16) float A_shared[2][BK][BM + A_PAD];
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

    // first vector of A and B that this thread copies
    const int A_m = tid / (BK / VEC), A_k = (tid % (BK / VEC)) * VEC;
    const int B_k = tid / (BN / VEC), B_n = (tid % (BN / VEC)) * VEC;

    // registers: operand fragments, accumulators, staging
    alignas(16) float A_frag[TM], B_frag[TN];
    alignas(16) float acc[TM][TN] = {};
    alignas(16) float A_next[VEC], B_next[VEC];

    // load the first tile (cache_shared)
    load4(A_next, A, lda, M, stop_k, tile_m + A_m, start_k + A_k);
    for (int e = 0; e < VEC; ++e) A_shared[0][A_k + e][A_m] = A_next[e];
    load4(&B_shared[0][B_k][B_n], B, ldb, stop_k, N, start_k + B_k, tile_n + B_n);
    int stage = 0;
    __syncthreads();

    // main loop over tiles along K
    for (int tile_k = start_k; tile_k < stop_k; tile_k += BK) {
        const int next_k = tile_k + BK, next_stage = 1 - stage;

        // load the next tile early (double_buffer)
        load4(A_next, A, lda, M, stop_k, tile_m + A_m, next_k + A_k);
        load4(B_next, B, ldb, stop_k, N, next_k + B_k, tile_n + B_n);

        // multiply the tile (register_block)
        #pragma unroll
        for (int k = 0; k < BK; ++k) {
            copy4(A_frag, &A_shared[stage][k][thread_m]);
            copy4(B_frag, &B_shared[stage][k][thread_n]);
            #pragma unroll
            for (int reg_m = 0; reg_m < TM; ++reg_m) {
                #pragma unroll
                for (int reg_n = 0; reg_n < TN; ++reg_n)
                    acc[reg_m][reg_n] = fmaf(A_frag[reg_m], B_frag[reg_n], acc[reg_m][reg_n]);
            }
        }

        // store the prefetched tile to shared memory (double_buffer)
        for (int e = 0; e < VEC; ++e) A_shared[next_stage][A_k + e][A_m] = A_next[e];
        copy4(&B_shared[next_stage][B_k][B_n], B_next);
        __syncthreads();
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

    // add the partial sums in order (split_k)
    #pragma unroll
    for (int reg_m = 0; reg_m < TM; ++reg_m) {
        #pragma unroll
        for (int reg_n = 0; reg_n < TN; reg_n += VEC) {
            const int part_at = (reg_m * TN + reg_n) * THREADS + tid * VEC;
            copy4(&acc[reg_m][reg_n], &workspace[(long long)own_tile * (BM * BN) + part_at]);
        }
    }
    #pragma unroll 3
    for (int other_part = 1; other_part < PARTS; ++other_part) {
        const int part_tile = own_tile + other_part * tiles;
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
    }

    // the epilogue (vectorize)
    #pragma unroll
    for (int reg_m = 0; reg_m < TM; ++reg_m) {
        const int m = tile_m + thread_m + reg_m;
        if (m < M) {
            #pragma unroll
            for (int reg_n = 0; reg_n < TN; reg_n += VEC) {
                const int n = tile_n + thread_n + reg_n;
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
    float *workspace, unsigned *arrived, cudaStream_t stream)
{
    using namespace gemm_detail;
    if (M < 0 || N < 0 || K < 0 || M > 2147483567 || N > 2147483567 || K > 2147483551 || lda < K ||
        ldb < N || ldc < N || lda % 4 != 0 || ldb % 4 != 0 || ldc % 4 != 0)
        return cudaErrorInvalidValue;
    if (reinterpret_cast<size_t>(A) % 16 != 0 || reinterpret_cast<size_t>(B) % 16 != 0 ||
        reinterpret_cast<size_t>(C) % 16 != 0 || reinterpret_cast<size_t>(workspace) % 16 != 0)
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

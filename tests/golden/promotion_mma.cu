// gemm: C[m, n] = alpha * acc + beta * C[m, n], acc = sum over k of A[m, k] * B[n, k] (A f16, B
// f16, C f32, accumulators f32)
//
// schedule (defaults left out):
//     gemm            C[m, n] = A[m, k] * B[n, k]
//     dtype           A=f16 B=f16
//     tile            m=32 n=32 k=32
//     cache_shared    A[m, k] B[n, k]
//     warp_tile       m=32 n=16
//     tensor_core     via=mma promote=16
//     vectorize       A.global B.global width=8
//     swizzle         A B
//     double_buffer   A B stages=3
//     double_buffer   A.register B.register
//     async_copy      A B via=cp_async
//     split_k         parts=2
// call (extents, leading dimensions: int; scalars: float; tensors: device pointers to unsigned
// short (f16 bits) for A, B, float for C):
//     launch_gemm(M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, workspace, arrived, stream)
// launch:
//     ceil(M / 32) * ceil(N / 32) * 2 blocks of 64 threads; none if C is empty
//     K = 0 if alpha == 0: as in BLAS, A and B are not read
// requires (leading dimensions count elements):
//     lda >= K, ldb >= K, ldc >= N
//     M <= 2147483599, N <= 2147483599, K <= 2147483503
//     lda % 8 == 0, ldb % 8 == 0
//     A, B aligned to 16 bytes
//     C overlaps none of A, B
//     workspace: ceil(M / 32) * ceil(N / 32) * 8192 bytes, aligned to 16 bytes
//     arrived: ceil(M / 32) * ceil(N / 32) * 4 bytes, zeros; each launch leaves zeros
//     concurrent launches need separate workspace and arrived

namespace gemm_detail {
// Copies 4 contiguous elements in one access.
__device__ __forceinline__ void copy4(float *target, const float *source)
{ *reinterpret_cast<float4 *>(target) = *reinterpret_cast<const float4 *>(source); }

// cp.async.cg: asynchronous copy of 16 bytes from global to shared memory: `valid` bytes of
// the source, then zeros.
__device__ __forceinline__ void gg_copy_async_16(
    unsigned short *target, const unsigned short *source, int valid)
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

// atom.inc: atomic increment that wraps to 0 after `last`; returns the old value.
// Acquire-release at GPU scope.
__device__ __forceinline__ unsigned gg_count_in(unsigned *counter, unsigned last) {
    unsigned before;
    asm volatile("atom.acq_rel.gpu.inc.u32 %0, [%1], %2;"
                 : "=r"(before) : "l"(counter), "r"(last) : "memory");
    return before;
}

// ldmatrix.x4: a warp loads four matrices of 8 x 8 elements of 16 bits, each to a register
// of every lane.  Lane 8 * i + r names row r of matrix i: 16 bytes at a multiple of 16.
__device__ __forceinline__ void gg_ldmatrix_x4(
    unsigned *fragment, const unsigned short *row)
{
    const unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
                 : "r"(from) : "memory");
}

// mma.m16n8k16: acc += a * b of warp fragments, f16; adjacent accumulators in each of two
// rows that are 8 apart.
__device__ __forceinline__ void gg_mma_m16n8k16_f16(
    float *upper, float *lower, const unsigned *a, const unsigned *b)
{ asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(upper[0]), "+f"(upper[1]), "+f"(lower[0]), "+f"(lower[1])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])); }

// ---- kernel ----
constexpr int BM = 32, BN = 32, BK = 32;  // threadblock tile of C, and its step along K
constexpr int WM = 32, WN = 16;  // warp tile
constexpr int TM = 4, TN = 4;  // micro-tile of a thread
constexpr int PN = 2;  // in vectors of this many adjacent elements
constexpr int LM = WM / TM, LN = WN / TN;  // threads along each side of a warp
constexpr int IM = 16, IN = 8, IK = 16;  // tile of one instruction
constexpr int FM = WM / IM, FN = WN / IN;  // fragments of a warp
constexpr int A_VEC = 8, B_VEC = 8, PART_VEC = 4;  // elements of a vector access
constexpr int STAGES = 3;  // tiles in shared memory
constexpr int PROMOTE = 16;  // promotion interval, in terms
constexpr int PARTS = 2;  // blocks that split K of a tile
constexpr int THREADS = (BM / WM) * (BN / WN) * 32;
// rows between a thread's copies
constexpr int A_STEP = THREADS / (BK / A_VEC), B_STEP = THREADS / (BK / B_VEC);
constexpr int A_VECTORS = BM / A_STEP, B_VECTORS = BN / B_STEP;  // a thread's copies of a tile
static_assert(WM % TM == 0 && WN % TN == 0, "the micro-tiles fill the tile");
static_assert(LM * LN == 32, "a warp's threads fill its tile");
static_assert(BK % IK == 0, "the steps fill the tile");
static_assert(THREADS % (BK / A_VEC) == 0 && A_VECTORS * A_STEP == BM,
    "the threads copy whole tiles of A");
static_assert(THREADS % (BK / B_VEC) == 0 && B_VECTORS * B_STEP == BN,
    "the threads copy whole tiles of B");
static_assert(THREADS <= 1024, "a block has at most 1024 threads");

// starts this thread's copies of a tile of A; zeros outside the matrix (cache_shared; vectorize;
// async_copy)
__device__ __forceinline__ void copy_A_tile(unsigned short (&A_shared)[BM][BK],
    const unsigned short *A, int lda, int M, int stop_k, int tile_m, int tile_k, int A_m, int A_k)
{
    #pragma unroll
    for (int vector = 0; vector < A_VECTORS; ++vector) {
        const int m = tile_m + A_m + vector * A_STEP, k = tile_k + A_k;
        const int valid = m < M && k < stop_k ? (stop_k - k < A_VEC ? stop_k - k : A_VEC) : 0;
        gg_copy_async_16(
            &A_shared[A_m + vector * A_STEP][A_k ^ (((A_m + vector * A_STEP) / 2 % 4) * 8)],
            &A[(long long)m * lda + k], valid * sizeof(unsigned short));
    }
}

// starts this thread's copies of a tile of B; zeros outside the matrix (cache_shared; vectorize;
// async_copy)
__device__ __forceinline__ void copy_B_tile(unsigned short (&B_shared)[BN][BK],
    const unsigned short *B, int ldb, int N, int stop_k, int tile_n, int tile_k, int B_n, int B_k)
{
    #pragma unroll
    for (int vector = 0; vector < B_VECTORS; ++vector) {
        const int n = tile_n + B_n + vector * B_STEP, k = tile_k + B_k;
        const int valid = n < N && k < stop_k ? (stop_k - k < B_VEC ? stop_k - k : B_VEC) : 0;
        gg_copy_async_16(
            &B_shared[B_n + vector * B_STEP][B_k ^ (((B_n + vector * B_STEP) / 2 % 4) * 8)],
            &B[(long long)n * ldb + k], valid * sizeof(unsigned short));
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
gemm(int M, int N, int K,
    float alpha, const unsigned short *__restrict__ A, int lda,
    const unsigned short *__restrict__ B, int ldb, float beta, float *__restrict__ C, int ldc,
    float *workspace, unsigned *arrived)
{
    // tiles in shared memory (cache_shared; swizzle; double_buffer A B stages=3)
    __shared__ alignas(16) unsigned short A_shared[STAGES][BM][BK];
    __shared__ alignas(16) unsigned short B_shared[STAGES][BN][BK];
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

    // the thread's position in it (tile; warp_tile; tensor_core)
    const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    const int thread_m = (warp / (BN / WN)) * WM + lane / LN;
    const int thread_n = (warp % (BN / WN)) * WN + (lane % LN) * PN;
    const int A_row_m = (warp / (BN / WN)) * WM + lane % 16;
    const int A_row_k = (lane / 16) * 8;
    const int B_row_n = (warp % (BN / WN)) * WN + lane % 8 + (lane / 16) * 8;
    const int B_row_k = (lane / 8 % 2) * 8;

    // first vector of A and B that this thread copies
    const int A_m = tid / (BK / A_VEC), A_k = (tid % (BK / A_VEC)) * A_VEC;
    const int B_n = tid / (BK / B_VEC), B_k = (tid % (BK / B_VEC)) * B_VEC;

    // registers: operand fragments, accumulators
    unsigned A_frag[2][FM * 4];
    unsigned B_frag[2][FN * 2];
    float part[TM][TN] = {};
    alignas(16) float acc[TM][TN] = {};

    // copy the first tiles (async_copy)
    for (int ahead = 0; ahead < STAGES - 1; ++ahead) {
        copy_A_tile(A_shared[ahead], A, lda, M, stop_k, tile_m, start_k + ahead * BK, A_m, A_k);
        copy_B_tile(B_shared[ahead], B, ldb, N, stop_k, tile_n, start_k + ahead * BK, B_n, B_k);
        gg_commit_group();
    }
    int stage = 0;
    gg_wait_group<STAGES - 2>();
    __syncthreads();

    // load the first fragments (double_buffer A.register B.register)
    #pragma unroll
    for (int frag_m = 0; frag_m < FM; ++frag_m) {
        gg_ldmatrix_x4(&A_frag[0][frag_m * 4],
            &A_shared[0][A_row_m + frag_m * IM][A_row_k ^ ((A_row_m / 2 % 4) * 8)]);
    }
    gg_ldmatrix_x4(B_frag[0], &B_shared[0][B_row_n][B_row_k ^ ((B_row_n / 2 % 4) * 8)]);

    // main loop over tiles along K
    for (int tile_k = start_k; tile_k < stop_k; tile_k += BK) {
        const int next_k = tile_k + (STAGES - 1) * BK;
        const int write_stage = stage > 0 ? stage - 1 : STAGES - 1;

        // copy a tile ahead (async_copy)
        copy_A_tile(A_shared[write_stage], A, lda, M, stop_k, tile_m, next_k, A_m, A_k);
        copy_B_tile(B_shared[write_stage], B, ldb, N, stop_k, tile_n, next_k, B_n, B_k);
        gg_commit_group();

        // multiply the tile (tensor_core)
        #pragma unroll
        for (int k = 0; k < BK; k += IK) {
            if (k + IK < BK) {
                #pragma unroll
                for (int frag_m = 0; frag_m < FM; ++frag_m) {
                    gg_ldmatrix_x4(&A_frag[(k / IK + 1) % 2][frag_m * 4],
                        &A_shared[stage][A_row_m + frag_m * IM]
                        [(A_row_k + k + IK) ^ ((A_row_m / 2 % 4) * 8)]);
                }
                gg_ldmatrix_x4(B_frag[(k / IK + 1) % 2],
                    &B_shared[stage][B_row_n][(B_row_k + k + IK) ^ ((B_row_n / 2 % 4) * 8)]);
            } else {
                // wait for the next tile, then read ahead into it
                // (double_buffer A.register B.register)
                stage = stage + 1 < STAGES ? stage + 1 : 0;
                gg_wait_group<STAGES - 2>();
                __syncthreads();
                #pragma unroll
                for (int frag_m = 0; frag_m < FM; ++frag_m) {
                    gg_ldmatrix_x4(&A_frag[(k / IK + 1) % 2][frag_m * 4],
                        &A_shared[stage][A_row_m + frag_m * IM][A_row_k ^ ((A_row_m / 2 % 4) * 8)]);
                }
                gg_ldmatrix_x4(B_frag[(k / IK + 1) % 2],
                    &B_shared[stage][B_row_n][B_row_k ^ ((B_row_n / 2 % 4) * 8)]);
            }
            #pragma unroll
            for (int frag_m = 0; frag_m < FM; ++frag_m) {
                #pragma unroll
                for (int frag_n = 0; frag_n < FN; ++frag_n) {
                    gg_mma_m16n8k16_f16(&part[frag_m * 2][frag_n * 2],
                        &part[frag_m * 2 + 1][frag_n * 2], &A_frag[k / IK % 2][frag_m * 4],
                        &B_frag[k / IK % 2][frag_n * 2]);
                }
            }
            if ((k + IK) % PROMOTE == 0) {
                // promote the partial accumulators to f32
                #pragma unroll
                for (int reg_m = 0; reg_m < TM; ++reg_m) {
                    #pragma unroll
                    for (int reg_n = 0; reg_n < TN; ++reg_n) {
                        acc[reg_m][reg_n] += part[reg_m][reg_n];
                        part[reg_m][reg_n] = 0.0f;
                    }
                }
            }
        }
    }

    // drain the outstanding cp.async groups
    gg_wait_group<0>();

    // write this split's partial sums to the workspace (split_k)
    #pragma unroll
    for (int reg_m = 0; reg_m < TM; ++reg_m) {
        #pragma unroll
        for (int reg_n = 0; reg_n < TN; reg_n += PART_VEC) {
            const int part_at = (reg_m * TN + reg_n) * THREADS + tid * PART_VEC;
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
        for (int reg_n = 0; reg_n < TN; reg_n += PART_VEC) {
            const int part_at = (reg_m * TN + reg_n) * THREADS + tid * PART_VEC;
            alignas(16) float part_sum[PART_VEC];
            copy4(part_sum, &workspace[(long long)part_tile * (BM * BN) + part_at]);
            for (int e = 0; e < PART_VEC; ++e) acc[reg_m][reg_n + e] += part_sum[e];
        }
    }

    // the epilogue
    #pragma unroll
    for (int reg_m = 0; reg_m < TM; ++reg_m) {
        const int m = tile_m + thread_m + reg_m * LM;
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
    float alpha, const unsigned short *A, int lda, const unsigned short *B, int ldb, float beta,
    float *C, int ldc, float *workspace, unsigned *arrived, cudaStream_t stream)
{
    using namespace gemm_detail;
    if (M < 0 || N < 0 || K < 0 || M > 2147483599 || N > 2147483599 || K > 2147483503 || lda < K ||
        ldb < K || ldc < N || lda % 8 != 0 || ldb % 8 != 0)
        return cudaErrorInvalidValue;
    if (reinterpret_cast<size_t>(A) % 16 != 0 || reinterpret_cast<size_t>(B) % 16 != 0 ||
        reinterpret_cast<size_t>(workspace) % 16 != 0)
        return cudaErrorMisalignedAddress;
    if (M == 0 || N == 0) return cudaSuccess;
    if (alpha == 0) K = 0;  // as in BLAS
    const long long blocks = ((M - 1) / BM + 1LL) * ((N - 1) / BN + 1LL) * PARTS;
    if (blocks > 2147483647) return cudaErrorInvalidConfiguration;
    gemm<<<static_cast<unsigned>(blocks), THREADS, 0, stream>>>(
        M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, workspace, arrived);
    return cudaGetLastError();
}
#endif

// gemm: C[m, n] = alpha * acc + beta * C[m, n], acc = sum over k of A[m, k] * B[k, n] (A f16, B
// f16, C f32, accumulators f32)
//
// schedule (defaults left out):
//     gemm            C[m, n] = A[m, k] * B[k, n]
//     dtype           A=f16 B=f16
//     tile            m=64 n=32 k=64
//     cache_shared    A[m, k] B[k, n] C[m, n]
//     warp_tile       m=32 n=16
//     tensor_core     via=mma
//     vectorize       A.global B.global width=8
//     vectorize       C width=4
//     swizzle         A B
//     double_buffer   A B stages=3
//     double_buffer   A.register B.register
//     async_copy      A B via=cp_async
// call (extents, leading dimensions: int; scalars: float; tensors: device pointers to unsigned
// short (f16 bits) for A, B, float for C):
//     launch_gemm(M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, stream)
// launch:
//     ceil(M / 64) * ceil(N / 32) blocks of 128 threads; none if C is empty
//     K = 0 if alpha == 0: as in BLAS, A and B are not read
// requires (leading dimensions count elements):
//     lda >= K, ldb >= N, ldc >= N
//     M <= 2147483567, N <= 2147483599, K <= 2147483439
//     lda % 8 == 0, ldb % 8 == 0, ldc % 4 == 0
//     A, B, C aligned to 16 bytes
//     C overlaps none of A, B

namespace gemm_detail {
// Copies 2 contiguous elements in one access.
__device__ __forceinline__ void copy2(float *target, const float *source)
{ *reinterpret_cast<float2 *>(target) = *reinterpret_cast<const float2 *>(source); }
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

// ldmatrix.x4.trans: a warp loads four matrices of 8 x 8 elements of 16 bits, each to a register
// of every lane, transposed.  Lane 8 * i + r names row r of matrix i: 16 bytes at a multiple of 16.
__device__ __forceinline__ void gg_ldmatrix_x4_trans(
    unsigned *fragment, const unsigned short *row)
{
    const unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
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
constexpr int BM = 64, BN = 32, BK = 64;  // threadblock tile of C, and its step along K
constexpr int WM = 32, WN = 16;  // warp tile
constexpr int TM = 4, TN = 4;  // micro-tile of a thread
constexpr int PN = 2;  // in vectors of this many adjacent elements
constexpr int LM = WM / TM, LN = WN / TN;  // threads along each side of a warp
constexpr int IM = 16, IN = 8, IK = 16;  // tile of one instruction
constexpr int FM = WM / IM, FN = WN / IN;  // fragments of a warp
constexpr int A_VEC = 8, B_VEC = 8, C_SHARED_VEC = 2, C_VEC = 4;  // elements of a vector access
constexpr int C_ROWS = (BM / WM) * LM;  // rows of C in shared memory at a time
constexpr int STAGES = 3;  // tiles in shared memory
constexpr int THREADS = (BM / WM) * (BN / WN) * 32;
// rows between a thread's copies
constexpr int A_STEP = THREADS / (BK / A_VEC), B_STEP = THREADS / (BN / B_VEC);
constexpr int A_VECTORS = BM / A_STEP, B_VECTORS = BK / B_STEP;  // a thread's copies of a tile
static_assert(WM % TM == 0 && WN % TN == 0, "the micro-tiles fill the tile");
static_assert(LM * LN == 32, "a warp's threads fill its tile");
static_assert(BK % IK == 0, "the steps fill the tile");
static_assert(THREADS * C_VEC == C_ROWS * BN, "the threads copy whole tiles");
static_assert(THREADS % (BK / A_VEC) == 0 && A_VECTORS * A_STEP == BM,
    "the threads copy whole tiles of A");
static_assert(THREADS % (BN / B_VEC) == 0 && B_VECTORS * B_STEP == BK,
    "the threads copy whole tiles of B");
static_assert(THREADS <= 1024, "a block has at most 1024 threads");

// starts this thread's copies of a tile of A; zeros outside the matrix (cache_shared;
// vectorize A.global B.global width=8; async_copy)
__device__ __forceinline__ void copy_A_tile(unsigned short (&A_shared)[BM][BK],
    const unsigned short *A, int lda, int M, int K, int tile_m, int tile_k, int A_m, int A_k)
{
    #pragma unroll
    for (int vector = 0; vector < A_VECTORS; ++vector) {
        const int m = tile_m + A_m + vector * A_STEP, k = tile_k + A_k;
        const int valid = m < M && k < K ? (K - k < A_VEC ? K - k : A_VEC) : 0;
        gg_copy_async_16(
            &A_shared[A_m + vector * A_STEP][A_k ^ (((A_m + vector * A_STEP) % 8) * 8)],
            &A[(long long)m * lda + k], valid * sizeof(unsigned short));
    }
}

// starts this thread's copies of a tile of B; zeros outside the matrix (cache_shared;
// vectorize A.global B.global width=8; async_copy)
__device__ __forceinline__ void copy_B_tile(unsigned short (&B_shared)[BK][BN],
    const unsigned short *B, int ldb, int K, int N, int tile_k, int tile_n, int B_k, int B_n)
{
    #pragma unroll
    for (int vector = 0; vector < B_VECTORS; ++vector) {
        const int k = tile_k + B_k + vector * B_STEP, n = tile_n + B_n;
        const int valid = k < K && n < N ? (N - n < B_VEC ? N - n : B_VEC) : 0;
        gg_copy_async_16(
            &B_shared[B_k + vector * B_STEP][B_n ^ (((B_k + vector * B_STEP) / 2 % 4) * 8)],
            &B[(long long)k * ldb + n], valid * sizeof(unsigned short));
    }
}

// copies the elements before `stop` of a vector whose first index is `first` (cache_shared;
// vectorize C width=4)
__device__ __forceinline__ void copy2(float *target, const float *source, int first, int stop) {
    if (first + C_SHARED_VEC - 1 < stop) return copy2(target, source);
    for (int e = 0; e < C_SHARED_VEC; ++e)
        if (first + e < stop) target[e] = source[e];
}

// copies the elements before `stop` of a vector whose first index is `first` (cache_shared;
// vectorize C width=4)
__device__ __forceinline__ void copy4(float *target, const float *source, int first, int stop) {
    if (first + C_VEC - 1 < stop) return copy4(target, source);
    for (int e = 0; e < C_VEC; ++e) if (first + e < stop) target[e] = source[e];
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
gemm(int M, int N, int K,
    float alpha, const unsigned short *__restrict__ A, int lda,
    const unsigned short *__restrict__ B, int ldb, float beta, float *__restrict__ C, int ldc)
{
    // tiles in shared memory (cache_shared; swizzle; double_buffer A B stages=3; tensor_core)
    __shared__ alignas(16) unsigned short A_shared[STAGES][BM][BK];
    __shared__ alignas(16) unsigned short B_shared[STAGES][BK][BN];
    __shared__ alignas(16) float C_shared[C_ROWS][BN];
    static_assert(sizeof(A_shared) + sizeof(B_shared) + sizeof(C_shared) <= 48 * 1024,
        "static shared memory: 48 KiB");

    // the block's tile of C (tile)
    const int blocks_n = (N - 1) / BN + 1;
    const int tile_m = (blockIdx.x / blocks_n) * BM;
    const int tile_n = (blockIdx.x % blocks_n) * BN;

    // the thread's position in it (tile; warp_tile; tensor_core)
    const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    const int thread_m = (warp / (BN / WN)) * WM + lane / LN;
    const int thread_n = (warp % (BN / WN)) * WN + (lane % LN) * PN;
    const int A_row_m = (warp / (BN / WN)) * WM + lane % 16;
    const int A_row_k = (lane / 16) * 8;
    const int B_row_n = (warp % (BN / WN)) * WN + (lane / 16) * 8;
    const int B_row_k = lane % 16;

    // first vector of A and B that this thread copies
    const int A_m = tid / (BK / A_VEC), A_k = (tid % (BK / A_VEC)) * A_VEC;
    const int B_k = tid / (BN / B_VEC), B_n = (tid % (BN / B_VEC)) * B_VEC;

    // registers: operand fragments, accumulators
    unsigned A_frag[2][FM * 4];
    unsigned B_frag[2][FN * 2];
    float acc[TM][TN] = {};

    // copy the first tiles (async_copy)
    for (int ahead = 0; ahead < STAGES - 1; ++ahead) {
        copy_A_tile(A_shared[ahead], A, lda, M, K, tile_m, ahead * BK, A_m, A_k);
        copy_B_tile(B_shared[ahead], B, ldb, K, N, ahead * BK, tile_n, B_k, B_n);
        gg_commit_group();
    }
    int stage = 0;
    gg_wait_group<STAGES - 2>();
    __syncthreads();

    // load the first fragments (double_buffer A.register B.register)
    #pragma unroll
    for (int frag_m = 0; frag_m < FM; ++frag_m) {
        gg_ldmatrix_x4(&A_frag[0][frag_m * 4],
            &A_shared[0][A_row_m + frag_m * IM][A_row_k ^ ((A_row_m % 8) * 8)]);
    }
    gg_ldmatrix_x4_trans(B_frag[0], &B_shared[0][B_row_k][B_row_n ^ ((B_row_k / 2 % 4) * 8)]);

    // main loop over tiles along K
    for (int tile_k = 0; tile_k < K; tile_k += BK) {
        const int next_k = tile_k + (STAGES - 1) * BK;
        const int write_stage = stage > 0 ? stage - 1 : STAGES - 1;

        // copy a tile ahead (async_copy)
        copy_A_tile(A_shared[write_stage], A, lda, M, K, tile_m, next_k, A_m, A_k);
        copy_B_tile(B_shared[write_stage], B, ldb, K, N, next_k, tile_n, B_k, B_n);
        gg_commit_group();

        // multiply the tile (tensor_core)
        #pragma unroll
        for (int k = 0; k < BK; k += IK) {
            if (k + IK < BK) {
                #pragma unroll
                for (int frag_m = 0; frag_m < FM; ++frag_m) {
                    gg_ldmatrix_x4(&A_frag[(k / IK + 1) % 2][frag_m * 4],
                        &A_shared[stage][A_row_m + frag_m * IM]
                        [(A_row_k + k + IK) ^ ((A_row_m % 8) * 8)]);
                }
                gg_ldmatrix_x4_trans(B_frag[(k / IK + 1) % 2],
                    &B_shared[stage][B_row_k + k + IK][B_row_n ^ ((B_row_k / 2 % 4) * 8)]);
            } else {
                // wait for the next tile, then read ahead into it
                // (double_buffer A.register B.register)
                stage = stage + 1 < STAGES ? stage + 1 : 0;
                gg_wait_group<STAGES - 2>();
                __syncthreads();
                #pragma unroll
                for (int frag_m = 0; frag_m < FM; ++frag_m) {
                    gg_ldmatrix_x4(&A_frag[(k / IK + 1) % 2][frag_m * 4],
                        &A_shared[stage][A_row_m + frag_m * IM][A_row_k ^ ((A_row_m % 8) * 8)]);
                }
                gg_ldmatrix_x4_trans(B_frag[(k / IK + 1) % 2],
                    &B_shared[stage][B_row_k][B_row_n ^ ((B_row_k / 2 % 4) * 8)]);
            }
            #pragma unroll
            for (int frag_m = 0; frag_m < FM; ++frag_m) {
                #pragma unroll
                for (int frag_n = 0; frag_n < FN; ++frag_n) {
                    gg_mma_m16n8k16_f16(&acc[frag_m * 2][frag_n * 2],
                        &acc[frag_m * 2 + 1][frag_n * 2], &A_frag[k / IK % 2][frag_m * 4],
                        &B_frag[k / IK % 2][frag_n * 2]);
                }
            }
        }
    }

    // drain the outstanding cp.async groups
    gg_wait_group<0>();

    // the epilogue: one row of each micro-tile at a time (cache_shared; tensor_core)
    #pragma unroll
    for (int reg_m = 0; reg_m < TM; ++reg_m) {
        __syncthreads();

        // stage it in shared memory (vectorize C width=4)
        {
            const int slice_m = (thread_m / WM) * LM + thread_m % WM;
            const int m = tile_m + thread_m + reg_m * LM;
            if (m < M) {
                #pragma unroll
                for (int reg_n = 0; reg_n < TN; reg_n += C_SHARED_VEC) {
                    const int n = tile_n + thread_n + reg_n * LN;
                    alignas(16) float out[C_SHARED_VEC];
                    alignas(16) float old[C_SHARED_VEC] = {};
                    if (beta != 0.0f) copy2(old, &C[(long long)m * ldc + n], n, N);
                    for (int e = 0; e < C_SHARED_VEC; ++e)
                        out[e] = fmaf(beta, old[e], alpha * acc[reg_m][reg_n + e]);
                    copy2(&C_shared[slice_m][thread_n + reg_n * LN], out);
                }
            }
        }
        __syncthreads();

        // store it: adjacent threads write a row (vectorize C width=4)
        {
            const int C_m = tid / (BN / C_VEC), C_n = (tid % (BN / C_VEC)) * C_VEC;
            const int m = tile_m + (C_m / LM) * WM + C_m % LM + reg_m * LM;
            const int n = tile_n + C_n;
            if (m < M) copy4(&C[(long long)m * ldc + n], &C_shared[C_m][C_n], n, N);
        }
    }
}

// ---- end of kernel ----
}  // namespace gemm_detail

#ifndef __CUDACC_RTC__
// Checks the requirements, then launches gemm on the stream.
cudaError_t launch_gemm(int M, int N, int K,
    float alpha, const unsigned short *A, int lda, const unsigned short *B, int ldb, float beta,
    float *C, int ldc, cudaStream_t stream)
{
    using namespace gemm_detail;
    if (M < 0 || N < 0 || K < 0 || M > 2147483567 || N > 2147483599 || K > 2147483439 || lda < K ||
        ldb < N || ldc < N || lda % 8 != 0 || ldb % 8 != 0 || ldc % 4 != 0)
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

// gemm: C[m, n] = alpha * acc + beta * C[m, n], acc = sum over k of A[m, k] * B[n, k] (A e4m3, B
// e5m2, C bf16, accumulators f32)
//
// schedule (defaults left out):
//     gemm            C[m, n] = A[m, k] * B[n, k]
//     dtype           A=e4m3 B=e5m2 C=bf16
//     target          sm_89
//     tile            m=32 n=64 k=64
//     cache_shared    A[m, k] B[n, k]
//     warp_tile       m=16 n=32
//     tensor_core     via=mma
//     vectorize       A.global B.global width=16
//     vectorize       C width=2
//     swizzle         A B
//     double_buffer   A B stages=3
//     async_copy      A B via=cp_async
// call (extents, leading dimensions: int; scalars: float; tensors: device pointers to unsigned char
// (e4m3 bits) for A, unsigned char (e5m2 bits) for B, unsigned short (bf16 bits) for C):
//     launch_gemm(M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, stream)
// launch:
//     ceil(M / 32) * ceil(N / 64) blocks of 128 threads; none if C is empty
//     K = 0 if alpha == 0: as in BLAS, A and B are not read
// requires (leading dimensions count elements):
//     lda >= K, ldb >= K, ldc >= N
//     M <= 2147483599, N <= 2147483567, K <= 2147483439
//     lda % 16 == 0, ldb % 16 == 0, ldc % 2 == 0
//     A, B aligned to 16 bytes
//     C aligned to 4 bytes
//     C overlaps none of A, B

namespace gemm_detail {
// Copies 2 contiguous elements in one access.
__device__ __forceinline__ void copy2(unsigned short *target, const unsigned short *source)
{ *reinterpret_cast<unsigned *>(target) = *reinterpret_cast<const unsigned *>(source); }
// mov.b32: bf16 bits to float: they are its upper half.
__device__ __forceinline__ float gg_from_bf16(unsigned short bits) {
    float number;
    asm("mov.b32 %0, {%1, %2};" : "=f"(number) : "h"(static_cast<unsigned short>(0)), "h"(bits));
    return number;
}
// cvt.rn.bf16.f32: float to bf16 bits, rounded to nearest even.
__device__ __forceinline__ unsigned short gg_to_bf16(float number)
{ unsigned short bits; asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(number)); return bits; }

// cp.async.cg: asynchronous copy of 16 bytes from global to shared memory: `valid` bytes of
// the source, then zeros.
__device__ __forceinline__ void gg_copy_async_16(
    unsigned char *target, const unsigned char *source, int valid)
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

// ldmatrix.x4: a warp loads four matrices of 8 rows of 16 bytes, each to a register
// of every lane.  Lane 8 * i + r names row r of matrix i: 16 bytes at a multiple of 16.
__device__ __forceinline__ void gg_ldmatrix_x4(
    unsigned *fragment, const unsigned char *row)
{
    const unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
                 : "r"(from) : "memory");
}

// mma.m16n8k32: acc += a * b of warp fragments, e4m3/e5m2; adjacent accumulators in each of two
// rows that are 8 apart.
__device__ __forceinline__ void gg_mma_m16n8k32_e4m3_e5m2(
    float *upper, float *lower, const unsigned *a, const unsigned *b)
{ asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(upper[0]), "+f"(upper[1]), "+f"(lower[0]), "+f"(lower[1])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])); }

// ---- kernel ----
constexpr int BM = 32, BN = 64, BK = 64;  // threadblock tile of C, and its step along K
constexpr int WM = 16, WN = 32;  // warp tile
constexpr int TM = 2, TN = 8;  // micro-tile of a thread
constexpr int PN = 2;  // in vectors of this many adjacent elements
constexpr int LM = WM / TM, LN = WN / TN;  // threads along each side of a warp
constexpr int IM = 16, IN = 8, IK = 32;  // tile of one instruction
constexpr int FM = WM / IM, FN = WN / IN;  // fragments of a warp
constexpr int A_VEC = 16, B_VEC = 16, C_VEC = 2;  // elements of a vector access
constexpr int STAGES = 3;  // tiles in shared memory
constexpr int THREADS = (BM / WM) * (BN / WN) * 32;
constexpr int B_STEP = THREADS / (BK / B_VEC);  // rows between a thread's copies
constexpr int B_VECTORS = BN / B_STEP;  // a thread's copies of a tile
static_assert(WM % TM == 0 && WN % TN == 0, "the micro-tiles fill the tile");
static_assert(LM * LN == 32, "a warp's threads fill its tile");
static_assert(BK % IK == 0, "the steps fill the tile");
static_assert(THREADS * A_VEC == BM * BK, "the threads copy whole tiles");
static_assert(THREADS % (BK / B_VEC) == 0 && B_VECTORS * B_STEP == BN,
    "the threads copy whole tiles of B");
static_assert(THREADS <= 1024, "a block has at most 1024 threads");

// starts this thread's copies of a tile of A; zeros outside the matrix (cache_shared;
// vectorize A.global B.global width=16; async_copy)
__device__ __forceinline__ void copy_A_tile(unsigned char (&A_shared)[BM][BK],
    const unsigned char *A, int lda, int M, int K, int tile_m, int tile_k, int A_m, int A_k)
{
    const int m = tile_m + A_m, k = tile_k + A_k;
    const int valid = m < M && k < K ? (K - k < A_VEC ? K - k : A_VEC) : 0;
    gg_copy_async_16(&A_shared[A_m][A_k ^ ((A_m / 2 % 4) * 16)], &A[(long long)m * lda + k],
        valid * sizeof(unsigned char));
}

// starts this thread's copies of a tile of B; zeros outside the matrix (cache_shared;
// vectorize A.global B.global width=16; async_copy)
__device__ __forceinline__ void copy_B_tile(unsigned char (&B_shared)[BN][BK],
    const unsigned char *B, int ldb, int N, int K, int tile_n, int tile_k, int B_n, int B_k)
{
    #pragma unroll
    for (int vector = 0; vector < B_VECTORS; ++vector) {
        const int n = tile_n + B_n + vector * B_STEP, k = tile_k + B_k;
        const int valid = n < N && k < K ? (K - k < B_VEC ? K - k : B_VEC) : 0;
        gg_copy_async_16(
            &B_shared[B_n + vector * B_STEP][B_k ^ (((B_n + vector * B_STEP) / 2 % 4) * 16)],
            &B[(long long)n * ldb + k], valid * sizeof(unsigned char));
    }
}

// copies the elements before `stop` of a vector whose first index is `first` (vectorize C width=2)
__device__ __forceinline__ void copy2(unsigned short *target, const unsigned short *source,
    int first, int stop)
{
    if (first + C_VEC - 1 < stop) return copy2(target, source);
    for (int e = 0; e < C_VEC; ++e) if (first + e < stop) target[e] = source[e];
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
gemm(int M, int N, int K,
    float alpha, const unsigned char *__restrict__ A, int lda, const unsigned char *__restrict__ B,
    int ldb, float beta, unsigned short *__restrict__ C, int ldc)
{
    // tiles in shared memory (cache_shared; swizzle; double_buffer)
    __shared__ alignas(16) unsigned char A_shared[STAGES][BM][BK];
    __shared__ alignas(16) unsigned char B_shared[STAGES][BN][BK];
    static_assert(sizeof(A_shared) + sizeof(B_shared) <= 48 * 1024, "static shared memory: 48 KiB");

    // the block's tile of C (tile)
    const int blocks_n = (N - 1) / BN + 1;
    const int tile_m = (blockIdx.x / blocks_n) * BM;
    const int tile_n = (blockIdx.x % blocks_n) * BN;

    // the thread's position in it (tile; warp_tile; tensor_core)
    const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    const int thread_m = (warp / (BN / WN)) * WM + lane / LN;
    const int thread_n = (warp % (BN / WN)) * WN + (lane % LN) * PN;
    const int A_row_m = (warp / (BN / WN)) * WM + lane % 16;
    const int A_row_k = (lane / 16) * 16;
    const int B_row_n = (warp % (BN / WN)) * WN + lane % 8 + (lane / 16) * 8;
    const int B_row_k = (lane / 8 % 2) * 16;

    // first vector of A and B that this thread copies
    const int A_m = tid / (BK / A_VEC), A_k = (tid % (BK / A_VEC)) * A_VEC;
    const int B_n = tid / (BK / B_VEC), B_k = (tid % (BK / B_VEC)) * B_VEC;

    // registers: operand fragments, accumulators
    unsigned A_frag[FM * 4];
    unsigned B_frag[FN * 2];
    float acc[TM][TN] = {};

    // copy the first tiles (async_copy)
    for (int ahead = 0; ahead < STAGES - 1; ++ahead) {
        copy_A_tile(A_shared[ahead], A, lda, M, K, tile_m, ahead * BK, A_m, A_k);
        copy_B_tile(B_shared[ahead], B, ldb, N, K, tile_n, ahead * BK, B_n, B_k);
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
        copy_A_tile(A_shared[write_stage], A, lda, M, K, tile_m, next_k, A_m, A_k);
        copy_B_tile(B_shared[write_stage], B, ldb, N, K, tile_n, next_k, B_n, B_k);
        gg_commit_group();

        // multiply the tile (tensor_core)
        #pragma unroll
        for (int k = 0; k < BK; k += IK) {
            gg_ldmatrix_x4(A_frag,
                &A_shared[stage][A_row_m][(A_row_k + k) ^ ((A_row_m / 2 % 4) * 16)]);
            #pragma unroll
            for (int frag_n = 0; frag_n < FN; frag_n += 2) {
                gg_ldmatrix_x4(&B_frag[frag_n * 2],
                    &B_shared[stage][B_row_n + frag_n * IN]
                    [(B_row_k + k) ^ ((B_row_n / 2 % 4) * 16)]);
            }
            #pragma unroll
            for (int frag_n = 0; frag_n < FN; ++frag_n) {
                gg_mma_m16n8k32_e4m3_e5m2(&acc[0][frag_n * 2], &acc[1][frag_n * 2], A_frag,
                    &B_frag[frag_n * 2]);
            }
        }
        stage = stage + 1 < STAGES ? stage + 1 : 0;
    }

    // drain the outstanding cp.async groups
    gg_wait_group<0>();

    // the epilogue (vectorize C width=2)
    #pragma unroll
    for (int reg_m = 0; reg_m < TM; ++reg_m) {
        const int m = tile_m + thread_m + reg_m * LM;
        if (m < M) {
            #pragma unroll
            for (int reg_n = 0; reg_n < TN; reg_n += C_VEC) {
                const int n = tile_n + thread_n + reg_n * LN;
                alignas(16) unsigned short out[C_VEC];
                alignas(16) unsigned short old[C_VEC] = {};
                if (beta != 0.0f) copy2(old, &C[(long long)m * ldc + n], n, N);
                for (int e = 0; e < C_VEC; ++e) {
                    out[e] =
                        gg_to_bf16(fmaf(beta, gg_from_bf16(old[e]), alpha * acc[reg_m][reg_n + e]));
                }
                copy2(&C[(long long)m * ldc + n], out, n, N);
            }
        }
    }
}

// ---- end of kernel ----
}  // namespace gemm_detail

#ifndef __CUDACC_RTC__
// Checks the requirements, then launches gemm on the stream.
cudaError_t launch_gemm(int M, int N, int K,
    float alpha, const unsigned char *A, int lda, const unsigned char *B, int ldb, float beta,
    unsigned short *C, int ldc, cudaStream_t stream)
{
    using namespace gemm_detail;
    if (M < 0 || N < 0 || K < 0 || M > 2147483599 || N > 2147483567 || K > 2147483439 || lda < K ||
        ldb < K || ldc < N || lda % 16 != 0 || ldb % 16 != 0 || ldc % 2 != 0)
        return cudaErrorInvalidValue;
    if (reinterpret_cast<size_t>(A) % 16 != 0 || reinterpret_cast<size_t>(B) % 16 != 0 ||
        reinterpret_cast<size_t>(C) % 4 != 0)
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

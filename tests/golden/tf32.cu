// gemm: C[m, n] = alpha * acc + beta * C[m, n], acc = sum over k of A[m, k] * B[k, n] (A tf32, B
// tf32, C f32, accumulators f32)
//
// schedule (defaults left out):
//     gemm            C[m, n] = A[m, k] * B[k, n]
//     dtype           A=tf32 B=tf32
//     tile            m=32 n=32 k=16
//     cache_shared    A[m, k] B[n, k]
//     warp_tile       m=16 n=16
//     tensor_core     via=mma
//     vectorize       A.global width=4
//     vectorize       C width=2
//     pad             A B by=4
//     double_buffer   A B
// call (extents, leading dimensions: int; scalars: float; tensors: device pointers to float
// (rounded to tf32) for A, B, float for C):
//     launch_gemm(M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, stream)
// launch:
//     ceil(M / 32) * ceil(N / 32) blocks of 128 threads; none if C is empty
//     K = 0 if alpha == 0: as in BLAS, A and B are not read
// requires (leading dimensions count elements):
//     lda >= K, ldb >= N, ldc >= N
//     M <= 2147483599, N <= 2147483599, K <= 2147483599
//     lda % 4 == 0, ldc % 2 == 0
//     A aligned to 16 bytes
//     C aligned to 8 bytes
//     C overlaps none of A, B

namespace gemm_detail {
// Copies 2 contiguous elements in one access.
__device__ __forceinline__ void copy2(float *target, const float *source)
{ *reinterpret_cast<float2 *>(target) = *reinterpret_cast<const float2 *>(source); }
// Copies 4 contiguous elements in one access.
__device__ __forceinline__ void copy4(float *target, const float *source)
{ *reinterpret_cast<float4 *>(target) = *reinterpret_cast<const float4 *>(source); }

// ldmatrix.x4: a warp loads four matrices of 8 rows of 16 bytes, each to a register
// of every lane, as tf32.  Lane 8 * i + r names row r of matrix i: 16 bytes at a multiple of 16.
__device__ __forceinline__ void gg_ldmatrix_x4(
    unsigned *fragment, const float *row)
{
    const unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
                 : "r"(from) : "memory");
    #pragma unroll
    for (int i = 0; i < 4; ++i)
        asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(fragment[i]) : "r"(fragment[i]));
}

// mma.m16n8k8: acc += a * b of warp fragments, tf32; adjacent accumulators in each of two
// rows that are 8 apart.
__device__ __forceinline__ void gg_mma_m16n8k8_tf32(
    float *upper, float *lower, const unsigned *a, const unsigned *b)
{ asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(upper[0]), "+f"(upper[1]), "+f"(lower[0]), "+f"(lower[1])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])); }

// ---- kernel ----
constexpr int BM = 32, BN = 32, BK = 16;  // threadblock tile of C, and its step along K
constexpr int WM = 16, WN = 16;  // warp tile
constexpr int TM = 2, TN = 4;  // micro-tile of a thread
constexpr int PN = 2;  // in vectors of this many adjacent elements
constexpr int LM = WM / TM, LN = WN / TN;  // threads along each side of a warp
constexpr int IM = 16, IN = 8, IK = 8;  // tile of one instruction
constexpr int FM = WM / IM, FN = WN / IN;  // fragments of a warp
constexpr int A_VEC = 4, C_VEC = 2;  // elements of a vector access
constexpr int A_PAD = 4, B_PAD = 4;  // padding elements of each row
constexpr int THREADS = (BM / WM) * (BN / WN) * 32;
constexpr int B_STEP = THREADS / BN;  // rows between a thread's copies
constexpr int B_VECTORS = BK / B_STEP;  // a thread's copies of a tile
static_assert(WM % TM == 0 && WN % TN == 0, "the micro-tiles fill the tile");
static_assert(LM * LN == 32, "a warp's threads fill its tile");
static_assert(BK % IK == 0, "the steps fill the tile");
static_assert(THREADS * A_VEC == BM * BK, "the threads copy whole tiles");
static_assert(THREADS % BN == 0 && B_VECTORS * B_STEP == BK, "the threads copy whole tiles of B");
static_assert(THREADS <= 1024, "a block has at most 1024 threads");

// loads a vector of A; zeros outside the matrix (cache_shared; vectorize A.global width=4)
__device__ __forceinline__ void load_A(float *target, const float *A, int lda, int M, int K, int m,
    int k)
{
    if (m < M && k + A_VEC - 1 < K) return copy4(target, &A[(long long)m * lda + k]);
    for (int e = 0; e < A_VEC; ++e)
        target[e] = m < M && k + e < K ? A[(long long)m * lda + k + e] : 0.0f;
}

// copies the elements before `stop` of a vector whose first index is `first` (vectorize C width=2)
__device__ __forceinline__ void copy2(float *target, const float *source, int first, int stop) {
    if (first + C_VEC - 1 < stop) return copy2(target, source);
    for (int e = 0; e < C_VEC; ++e) if (first + e < stop) target[e] = source[e];
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
gemm(int M, int N, int K,
    float alpha, const float *__restrict__ A, int lda, const float *__restrict__ B, int ldb,
    float beta, float *__restrict__ C, int ldc)
{
    // tiles in shared memory (cache_shared; pad; double_buffer)
    __shared__ alignas(16) float A_shared[2][BM][BK + A_PAD];
    __shared__ alignas(16) float B_shared[2][BN][BK + B_PAD];
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
    const int A_row_k = (lane / 16) * 4;
    const int B_row_n = (warp % (BN / WN)) * WN + lane % 8 + (lane / 16) * 8;
    const int B_row_k = (lane / 8 % 2) * 4;

    // first vector of A and B that this thread copies
    const int A_m = tid / (BK / A_VEC), A_k = (tid % (BK / A_VEC)) * A_VEC;
    const int B_k = tid / BN, B_n = tid % BN;

    // registers: operand fragments, accumulators, staging
    unsigned A_frag[FM * 4];
    unsigned B_frag[FN * 2];
    float acc[TM][TN] = {};
    alignas(16) float A_next[A_VEC];
    float B_next[B_VECTORS];

    // load the first tile (cache_shared)
    load_A(&A_shared[0][A_m][A_k], A, lda, M, K, tile_m + A_m, A_k);
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
        load_A(A_next, A, lda, M, K, tile_m + A_m, next_k + A_k);
        #pragma unroll
        for (int vector = 0; vector < B_VECTORS; ++vector) {
            const int k = next_k + B_k + vector * B_STEP, n = tile_n + B_n;
            B_next[vector] = k < K && n < N ? B[(long long)k * ldb + n] : 0.0f;
        }

        // multiply the tile (tensor_core)
        #pragma unroll
        for (int k = 0; k < BK; k += IK) {
            gg_ldmatrix_x4(A_frag, &A_shared[stage][A_row_m][A_row_k + k]);
            gg_ldmatrix_x4(B_frag, &B_shared[stage][B_row_n][B_row_k + k]);
            #pragma unroll
            for (int frag_n = 0; frag_n < FN; ++frag_n) {
                gg_mma_m16n8k8_tf32(&acc[0][frag_n * 2], &acc[1][frag_n * 2], A_frag,
                    &B_frag[frag_n * 2]);
            }
        }

        // store the prefetched tile to shared memory (double_buffer)
        copy4(&A_shared[next_stage][A_m][A_k], A_next);
        #pragma unroll
        for (int vector = 0; vector < B_VECTORS; ++vector)
            B_shared[next_stage][B_n][B_k + vector * B_STEP] = B_next[vector];
        __syncthreads();
        stage = next_stage;
    }

    // the epilogue (vectorize C width=2)
    #pragma unroll
    for (int reg_m = 0; reg_m < TM; ++reg_m) {
        const int m = tile_m + thread_m + reg_m * LM;
        if (m < M) {
            #pragma unroll
            for (int reg_n = 0; reg_n < TN; reg_n += C_VEC) {
                const int n = tile_n + thread_n + reg_n * LN;
                alignas(16) float out[C_VEC];
                alignas(16) float old[C_VEC] = {};
                if (beta != 0.0f) copy2(old, &C[(long long)m * ldc + n], n, N);
                for (int e = 0; e < C_VEC; ++e)
                    out[e] = fmaf(beta, old[e], alpha * acc[reg_m][reg_n + e]);
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
    float alpha, const float *A, int lda, const float *B, int ldb, float beta, float *C, int ldc,
    cudaStream_t stream)
{
    using namespace gemm_detail;
    if (M < 0 || N < 0 || K < 0 || M > 2147483599 || N > 2147483599 || K > 2147483599 || lda < K ||
        ldb < N || ldc < N || lda % 4 != 0 || ldc % 2 != 0)
        return cudaErrorInvalidValue;
    if (reinterpret_cast<size_t>(A) % 16 != 0 || reinterpret_cast<size_t>(C) % 8 != 0)
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

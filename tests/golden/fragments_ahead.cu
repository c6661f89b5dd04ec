// gemm: C[m, n] = alpha * acc + beta * C[m, n], acc = sum over k of A[m, k] * B[k, n] (f32)
//
// schedule (defaults left out):
//     gemm            C[m, n] = A[m, k] * B[k, n]
//     tile            m=32 n=64 k=8
//     cache_shared    A[k, m] B[k, n]
//     register_block  m=4 n=8
//     vectorize       A B C width=4
//     double_buffer   A B stages=3
//     double_buffer   A.register B.register
// call (extents, leading dimensions: int; scalars: float; tensors: device pointers to float):
//     launch_gemm(M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, stream)
// launch:
//     ceil(M / 32) * ceil(N / 64) blocks of 8 x 8 threads; none if C is empty
//     K = 0 if alpha == 0: as in BLAS, A and B are not read
// requires (leading dimensions count elements):
//     lda >= K, ldb >= N, ldc >= N
//     M <= 2147483599, N <= 2147483567, K <= 2147483607
//     lda % 4 == 0, ldb % 4 == 0, ldc % 4 == 0
//     A, B, C aligned to 16 bytes
//     C overlaps none of A, B

namespace gemm_detail {
// Copies 4 contiguous elements in one access.
__device__ __forceinline__ void copy4(float *target, const float *source)
{ *reinterpret_cast<float4 *>(target) = *reinterpret_cast<const float4 *>(source); }

// ---- kernel ----
constexpr int BM = 32, BN = 64, BK = 8;  // threadblock tile of C, and its step along K
constexpr int TM = 4, TN = 8;  // micro-tile of a thread
constexpr int PN = 4;  // in vectors of this many adjacent elements
constexpr int LM = BM / TM, LN = BN / TN;  // threads along each side of the block
constexpr int VEC = 4;  // elements of a vector access
constexpr int STAGES = 3;  // tiles in shared memory
constexpr int THREADS = LM * LN;
constexpr int B_STEP = THREADS / (BN / VEC);  // rows between a thread's copies
constexpr int B_VECTORS = BK / B_STEP;  // a thread's copies of a tile
static_assert(BM % TM == 0 && BN % TN == 0, "the micro-tiles fill the tile");
static_assert(THREADS * VEC == BM * BK, "the threads copy whole tiles");
static_assert(THREADS % (BN / VEC) == 0 && B_VECTORS * B_STEP == BK,
    "the threads copy whole tiles of B");
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
    float beta, float *__restrict__ C, int ldc)
{
    // tiles in shared memory (cache_shared; double_buffer A B stages=3)
    __shared__ alignas(16) float A_shared[STAGES][BK][BM];
    __shared__ alignas(16) float B_shared[STAGES][BK][BN];
    static_assert(sizeof(A_shared) + sizeof(B_shared) <= 48 * 1024, "static shared memory: 48 KiB");

    // the block's tile of C (tile)
    const int blocks_n = (N - 1) / BN + 1;
    const int tile_m = (blockIdx.x / blocks_n) * BM;
    const int tile_n = (blockIdx.x % blocks_n) * BN;

    // the thread's position in it (tile; register_block)
    const int tid = threadIdx.y * LN + threadIdx.x;
    const int thread_m = threadIdx.y * TM, thread_n = threadIdx.x * PN;

    // first vector of A and B that this thread copies
    const int A_m = tid / (BK / VEC), A_k = (tid % (BK / VEC)) * VEC;
    const int B_k = tid / (BN / VEC), B_n = (tid % (BN / VEC)) * VEC;

    // registers: operand fragments, accumulators, staging
    alignas(16) float A_frag[2][TM], B_frag[2][TN];
    float acc[TM][TN] = {};
    alignas(16) float A_next[VEC], B_next[B_VECTORS][VEC];

    // load the first tiles (cache_shared)
    for (int ahead = 0; ahead < STAGES - 1; ++ahead) {
        load4(A_next, A, lda, M, K, tile_m + A_m, ahead * BK + A_k);
        for (int e = 0; e < VEC; ++e) A_shared[ahead][A_k + e][A_m] = A_next[e];
        #pragma unroll
        for (int vector = 0; vector < B_VECTORS; ++vector) {
            load4(&B_shared[ahead][B_k + vector * B_STEP][B_n], B, ldb, K, N,
                ahead * BK + B_k + vector * B_STEP, tile_n + B_n);
        }
    }
    int stage = 0;
    __syncthreads();

    // load the first fragments (double_buffer A.register B.register)
    copy4(A_frag[0], &A_shared[0][0][thread_m]);
    #pragma unroll
    for (int reg_n = 0; reg_n < TN; reg_n += VEC)
        copy4(&B_frag[0][reg_n], &B_shared[0][0][thread_n + reg_n * LN]);

    // main loop over tiles along K
    for (int tile_k = 0; tile_k < K; tile_k += BK) {
        const int next_k = tile_k + (STAGES - 1) * BK;
        const int write_stage = stage > 0 ? stage - 1 : STAGES - 1;

        // load the next tile early (double_buffer A B stages=3)
        load4(A_next, A, lda, M, K, tile_m + A_m, next_k + A_k);
        if (next_k + BK <= K && tile_n + BN <= N) {
            #pragma unroll
            for (int vector = 0; vector < B_VECTORS; ++vector) {
                const int k = next_k + B_k + vector * B_STEP, n = tile_n + B_n;
                copy4(B_next[vector], &B[(long long)k * ldb + n]);
            }
        } else {
            #pragma unroll
            for (int vector = 0; vector < B_VECTORS; ++vector) {
                load4(B_next[vector], B, ldb, K, N, next_k + B_k + vector * B_STEP, tile_n + B_n);
            }
        }

        // multiply the tile (register_block)
        #pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (k + 1 < BK) {
                copy4(A_frag[(k + 1) % 2], &A_shared[stage][k + 1][thread_m]);
                #pragma unroll
                for (int reg_n = 0; reg_n < TN; reg_n += VEC) {
                    copy4(&B_frag[(k + 1) % 2][reg_n],
                        &B_shared[stage][k + 1][thread_n + reg_n * LN]);
                }
            } else {
                // store the prefetched tile to shared memory, then read ahead into it
                // (double_buffer A.register B.register)
                stage = stage + 1 < STAGES ? stage + 1 : 0;
                for (int e = 0; e < VEC; ++e) A_shared[write_stage][A_k + e][A_m] = A_next[e];
                #pragma unroll
                for (int vector = 0; vector < B_VECTORS; ++vector)
                    copy4(&B_shared[write_stage][B_k + vector * B_STEP][B_n], B_next[vector]);
                __syncthreads();
                copy4(A_frag[(k + 1) % 2], &A_shared[stage][0][thread_m]);
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

    // the epilogue (vectorize)
    #pragma unroll
    for (int reg_m = 0; reg_m < TM; ++reg_m) {
        const int m = tile_m + thread_m + reg_m;
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
    if (M < 0 || N < 0 || K < 0 || M > 2147483599 || N > 2147483567 || K > 2147483607 || lda < K ||
        ldb < N || ldc < N || lda % 4 != 0 || ldb % 4 != 0 || ldc % 4 != 0)
        return cudaErrorInvalidValue;
    if (reinterpret_cast<size_t>(A) % 16 != 0 || reinterpret_cast<size_t>(B) % 16 != 0 ||
        reinterpret_cast<size_t>(C) % 16 != 0)
        return cudaErrorMisalignedAddress;
    if (M == 0 || N == 0) return cudaSuccess;
    if (alpha == 0) K = 0;  // as in BLAS
    const long long blocks = ((M - 1) / BM + 1LL) * ((N - 1) / BN + 1LL);
    if (blocks > 2147483647) return cudaErrorInvalidConfiguration;
    gemm<<<static_cast<unsigned>(blocks), dim3(LN, LM), 0, stream>>>(
        M, N, K, alpha, A, lda, B, ldb, beta, C, ldc);
    return cudaGetLastError();
}
#endif

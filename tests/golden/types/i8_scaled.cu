// gemm: C[m, n] = acc * SA[m] * SB[n], acc = sum over k of A[m, k] * B[n, k] (A i8, B i8, C f32,
// accumulators i32)
//
// schedule (defaults left out):
//     gemm            C[m, n] = A[m, k] * B[n, k]
//     dtype           A=i8 B=i8 acc=i32
//     tile            m=128 n=128 k=32
//     cache_shared    A[k, m] B[k, n]
//     register_block  m=8 n=8
//     vectorize       A B C width=4
//     double_buffer   A A.register B B.register
//     fuse_epilogue   acc * SA[m] * SB[n]
// call (extents, leading dimensions: int; scalars: float; tensors: device pointers to signed char
// for A, B, float for C, SA, SB):
//     launch_gemm(M, N, K, A, lda, B, ldb, C, ldc, SA, SB, stream)
// launch:
//     ceil(M / 128) * ceil(N / 128) blocks of 16 x 16 threads; none if C is empty
//     accumulators wrap to 32 bits; none does while K <= 131071
// requires (leading dimensions count elements):
//     lda >= K, ldb >= K, ldc >= N
//     M <= 2147483503, N <= 2147483503, K <= 2147483567
//     lda % 4 == 0, ldb % 4 == 0, ldc % 4 == 0
//     A, B aligned to 4 bytes
//     C aligned to 16 bytes
//     C overlaps none of A, B, SA, SB

namespace gemm_detail {
// Copies 4 contiguous elements in one access.
__device__ __forceinline__ void copy4(float *target, const float *source)
{ *reinterpret_cast<float4 *>(target) = *reinterpret_cast<const float4 *>(source); }
// Copies 4 contiguous elements in one access.
__device__ __forceinline__ void copy4(signed char *target, const signed char *source)
{ *reinterpret_cast<unsigned *>(target) = *reinterpret_cast<const unsigned *>(source); }
// mad.lo.s32: the lower 32 bits of a * b + c (wraps).
__device__ __forceinline__ int gg_mad(int a, int b, int c)
{ int sum; asm("mad.lo.s32 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(c)); return sum; }

// ---- kernel ----
constexpr int BM = 128, BN = 128, BK = 32;  // threadblock tile of C, and its step along K
constexpr int TM = 8, TN = 8;  // micro-tile of a thread
constexpr int PM = 4, PN = 4;  // in vectors of this many adjacent elements
constexpr int LM = BM / TM, LN = BN / TN;  // threads along each side of the block
constexpr int VEC = 4;  // elements of a vector access
constexpr int THREADS = LM * LN;
// rows between a thread's copies
constexpr int A_STEP = THREADS / (BK / VEC), B_STEP = THREADS / (BK / VEC);
constexpr int A_VECTORS = BM / A_STEP, B_VECTORS = BN / B_STEP;  // a thread's copies of a tile
static_assert(BM % TM == 0 && BN % TN == 0, "the micro-tiles fill the tile");
static_assert(THREADS % (BK / VEC) == 0 && A_VECTORS * A_STEP == BM,
    "the threads copy whole tiles of A");
static_assert(THREADS % (BK / VEC) == 0 && B_VECTORS * B_STEP == BN,
    "the threads copy whole tiles of B");
static_assert(THREADS <= 1024, "a block has at most 1024 threads");

// loads a vector of A or B; zeros outside the matrix (cache_shared; vectorize)
__device__ __forceinline__ void load4(signed char *target, const signed char *X, int ldx, int rows,
    int cols, int i, int j)
{
    if (i < rows && j + VEC - 1 < cols) return copy4(target, &X[(long long)i * ldx + j]);
    for (int e = 0; e < VEC; ++e)
        target[e] = i < rows && j + e < cols ? X[(long long)i * ldx + j + e] : 0;
}

// copies the elements before `stop` of a vector whose first index is `first` (vectorize;
// fuse_epilogue)
__device__ __forceinline__ void copy4(float *target, const float *source, int first, int stop) {
    if (first + VEC - 1 < stop) return copy4(target, source);
    for (int e = 0; e < VEC; ++e) if (first + e < stop) target[e] = source[e];
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
gemm(int M, int N, int K,
    const signed char *__restrict__ A, int lda, const signed char *__restrict__ B, int ldb,
    float *__restrict__ C, int ldc, const float *__restrict__ SA, const float *__restrict__ SB)
{
    // tiles in shared memory (cache_shared; double_buffer)
    __shared__ alignas(16) signed char A_shared[2][BK][BM];
    __shared__ alignas(16) signed char B_shared[2][BK][BN];
    static_assert(sizeof(A_shared) + sizeof(B_shared) <= 48 * 1024, "static shared memory: 48 KiB");

    // the block's tile of C (tile)
    const int blocks_n = (N - 1) / BN + 1;
    const int tile_m = (blockIdx.x / blocks_n) * BM;
    const int tile_n = (blockIdx.x % blocks_n) * BN;

    // the thread's position in it (tile; register_block)
    const int tid = threadIdx.y * LN + threadIdx.x;
    const int thread_m = threadIdx.y * PM, thread_n = threadIdx.x * PN;

    // first vector of A and B that this thread copies
    const int A_m = tid / (BK / VEC), A_k = (tid % (BK / VEC)) * VEC;
    const int B_n = tid / (BK / VEC), B_k = (tid % (BK / VEC)) * VEC;

    // registers: operand fragments, accumulators, staging
    alignas(16) int A_frag[2][TM], B_frag[2][TN];
    int acc[TM][TN] = {};
    alignas(16) signed char A_next[A_VECTORS][VEC], B_next[B_VECTORS][VEC];

    // load the first tile (cache_shared)
    #pragma unroll
    for (int vector = 0; vector < A_VECTORS; ++vector) {
        load4(A_next[vector], A, lda, M, K, tile_m + A_m + vector * A_STEP, A_k);
        for (int e = 0; e < VEC; ++e)
            A_shared[0][A_k + e][A_m + vector * A_STEP] = A_next[vector][e];
    }
    #pragma unroll
    for (int vector = 0; vector < B_VECTORS; ++vector) {
        load4(B_next[vector], B, ldb, N, K, tile_n + B_n + vector * B_STEP, B_k);
        for (int e = 0; e < VEC; ++e)
            B_shared[0][B_k + e][B_n + vector * B_STEP] = B_next[vector][e];
    }
    int stage = 0;
    __syncthreads();

    // load the first fragments (double_buffer)
    #pragma unroll
    for (int reg_m = 0; reg_m < TM; reg_m += VEC) {
        alignas(16) signed char A_raw[VEC];
        copy4(A_raw, &A_shared[0][0][thread_m + reg_m * LM]);
        for (int e = 0; e < VEC; ++e) A_frag[0][reg_m + e] = A_raw[e];
    }
    #pragma unroll
    for (int reg_n = 0; reg_n < TN; reg_n += VEC) {
        alignas(16) signed char B_raw[VEC];
        copy4(B_raw, &B_shared[0][0][thread_n + reg_n * LN]);
        for (int e = 0; e < VEC; ++e) B_frag[0][reg_n + e] = B_raw[e];
    }

    // main loop over tiles along K
    for (int tile_k = 0; tile_k < K; tile_k += BK) {
        const int next_k = tile_k + BK, next_stage = 1 - stage;

        // load the next tile early (double_buffer)
        if (tile_m + BM <= M && next_k + BK <= K) {
            #pragma unroll
            for (int vector = 0; vector < A_VECTORS; ++vector) {
                const int m = tile_m + A_m + vector * A_STEP, k = next_k + A_k;
                copy4(A_next[vector], &A[(long long)m * lda + k]);
            }
        } else {
            #pragma unroll
            for (int vector = 0; vector < A_VECTORS; ++vector) {
                load4(A_next[vector], A, lda, M, K, tile_m + A_m + vector * A_STEP, next_k + A_k);
            }
        }
        if (tile_n + BN <= N && next_k + BK <= K) {
            #pragma unroll
            for (int vector = 0; vector < B_VECTORS; ++vector) {
                const int n = tile_n + B_n + vector * B_STEP, k = next_k + B_k;
                copy4(B_next[vector], &B[(long long)n * ldb + k]);
            }
        } else {
            #pragma unroll
            for (int vector = 0; vector < B_VECTORS; ++vector) {
                load4(B_next[vector], B, ldb, N, K, tile_n + B_n + vector * B_STEP, next_k + B_k);
            }
        }

        // multiply the tile (register_block)
        #pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (k + 1 < BK) {
                #pragma unroll
                for (int reg_m = 0; reg_m < TM; reg_m += VEC) {
                    alignas(16) signed char A_raw[VEC];
                    copy4(A_raw, &A_shared[stage][k + 1][thread_m + reg_m * LM]);
                    for (int e = 0; e < VEC; ++e) A_frag[(k + 1) % 2][reg_m + e] = A_raw[e];
                }
                #pragma unroll
                for (int reg_n = 0; reg_n < TN; reg_n += VEC) {
                    alignas(16) signed char B_raw[VEC];
                    copy4(B_raw, &B_shared[stage][k + 1][thread_n + reg_n * LN]);
                    for (int e = 0; e < VEC; ++e) B_frag[(k + 1) % 2][reg_n + e] = B_raw[e];
                }
            } else {
                // store the prefetched tile to shared memory, then read ahead into it
                // (double_buffer)
                #pragma unroll
                for (int vector = 0; vector < A_VECTORS; ++vector) {
                    for (int e = 0; e < VEC; ++e)
                        A_shared[next_stage][A_k + e][A_m + vector * A_STEP] = A_next[vector][e];
                }
                #pragma unroll
                for (int vector = 0; vector < B_VECTORS; ++vector) {
                    for (int e = 0; e < VEC; ++e)
                        B_shared[next_stage][B_k + e][B_n + vector * B_STEP] = B_next[vector][e];
                }
                __syncthreads();
                #pragma unroll
                for (int reg_m = 0; reg_m < TM; reg_m += VEC) {
                    alignas(16) signed char A_raw[VEC];
                    copy4(A_raw, &A_shared[next_stage][0][thread_m + reg_m * LM]);
                    for (int e = 0; e < VEC; ++e) A_frag[(k + 1) % 2][reg_m + e] = A_raw[e];
                }
                #pragma unroll
                for (int reg_n = 0; reg_n < TN; reg_n += VEC) {
                    alignas(16) signed char B_raw[VEC];
                    copy4(B_raw, &B_shared[next_stage][0][thread_n + reg_n * LN]);
                    for (int e = 0; e < VEC; ++e) B_frag[(k + 1) % 2][reg_n + e] = B_raw[e];
                }
            }
            #pragma unroll
            for (int reg_m = 0; reg_m < TM; ++reg_m) {
                #pragma unroll
                for (int reg_n = 0; reg_n < TN; ++reg_n) {
                    acc[reg_m][reg_n] =
                        gg_mad(A_frag[k % 2][reg_m], B_frag[k % 2][reg_n], acc[reg_m][reg_n]);
                }
            }
        }
        stage = next_stage;
    }

    // the epilogue (vectorize; fuse_epilogue)
    float SB_frag[TN];
    #pragma unroll
    for (int reg_n = 0; reg_n < TN; ++reg_n) {
        const int n = tile_n + thread_n + (reg_n / PN) * (PN * LN) + reg_n % PN;
        SB_frag[reg_n] = n < N ? SB[n] : 0.0f;
    }
    #pragma unroll
    for (int reg_m = 0; reg_m < TM; ++reg_m) {
        const int m = tile_m + thread_m + (reg_m / PM) * (PM * LM) + reg_m % PM;
        if (m < M) {
            #pragma unroll
            for (int reg_n = 0; reg_n < TN; reg_n += VEC) {
                const int n = tile_n + thread_n + reg_n * LN;
                alignas(16) float out[VEC];
                for (int e = 0; e < VEC; ++e)
                    out[e] = static_cast<float>(acc[reg_m][reg_n + e]) * SA[m] * SB_frag[reg_n + e];
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
    const signed char *A, int lda, const signed char *B, int ldb, float *C, int ldc,
    const float *SA, const float *SB, cudaStream_t stream)
{
    using namespace gemm_detail;
    if (M < 0 || N < 0 || K < 0 || M > 2147483503 || N > 2147483503 || K > 2147483567 || lda < K ||
        ldb < K || ldc < N || lda % 4 != 0 || ldb % 4 != 0 || ldc % 4 != 0)
        return cudaErrorInvalidValue;
    if (reinterpret_cast<size_t>(A) % 4 != 0 || reinterpret_cast<size_t>(B) % 4 != 0 ||
        reinterpret_cast<size_t>(C) % 16 != 0)
        return cudaErrorMisalignedAddress;
    if (M == 0 || N == 0) return cudaSuccess;
    const long long blocks = ((M - 1) / BM + 1LL) * ((N - 1) / BN + 1LL);
    if (blocks > 2147483647) return cudaErrorInvalidConfiguration;
    gemm<<<static_cast<unsigned>(blocks), dim3(LN, LM), 0, stream>>>(
        M, N, K, A, lda, B, ldb, C, ldc, SA, SB);
    return cudaGetLastError();
}
#endif

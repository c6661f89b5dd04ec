// gemm: C[m, n] = acc * SA[m] * SB[n], acc = sum over k of A[m, k] * B[n, k] (A e4m3, B e5m2, C
// bf16, accumulators f32)
//
// schedule (defaults left out):
//     gemm            C[m, n] = A[m, k] * B[n, k]
//     dtype           A=e4m3 B=e5m2 C=bf16 SA=f32 SB=f32
//     target          sm_89
//     tile            m=128 n=128 k=32
//     cache_shared    A[k, m] B[k, n]
//     register_block  m=8 n=8
//     vectorize       A B C width=8
//     double_buffer   A A.register B B.register
//     fuse_epilogue   acc * SA[m] * SB[n]
// call (extents, leading dimensions: int; scalars: float; tensors: device pointers to unsigned char
// (e4m3 bits) for A, unsigned char (e5m2 bits) for B, unsigned short (bf16 bits) for C, float for
// SA, SB):
//     launch_gemm(M, N, K, A, lda, B, ldb, C, ldc, SA, SB, stream)
// launch:
//     ceil(M / 128) * ceil(N / 128) blocks of 16 x 16 threads; none if C is empty
// requires (leading dimensions count elements):
//     lda >= K, ldb >= K, ldc >= N
//     M <= 2147483503, N <= 2147483503, K <= 2147483567
//     lda % 8 == 0, ldb % 8 == 0, ldc % 8 == 0
//     A, B aligned to 8 bytes
//     C aligned to 16 bytes
//     C overlaps none of A, B, SA, SB

namespace gemm_detail {
// Copies 8 contiguous elements in one access.
__device__ __forceinline__ void copy8(unsigned short *target, const unsigned short *source)
{ *reinterpret_cast<uint4 *>(target) = *reinterpret_cast<const uint4 *>(source); }
// Copies 8 contiguous elements in one access.
__device__ __forceinline__ void copy8(unsigned char *target, const unsigned char *source)
{ *reinterpret_cast<uint2 *>(target) = *reinterpret_cast<const uint2 *>(source); }
// cvt.rn.bf16.f32: float to bf16 bits, rounded to nearest even.
__device__ __forceinline__ unsigned short gg_to_bf16(float number)
{ unsigned short bits; asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(number)); return bits; }
// cvt.rn.f16x2.e4m3x2, cvt.f32.f16: e4m3 bits to float, exactly.
__device__ __forceinline__ float gg_from_e4m3(unsigned char bits) {
    float number;
    asm("{\n.reg .b32 pair;\n.reg .b16 low, high;\n"
        "cvt.rn.f16x2.e4m3x2 pair, %1;\nmov.b32 {low, high}, pair;\ncvt.f32.f16 %0, low;\n}"
        : "=f"(number) : "h"(static_cast<unsigned short>(bits)));
    return number;
}
// cvt.rn.f16x2.e5m2x2, cvt.f32.f16: e5m2 bits to float, exactly.
__device__ __forceinline__ float gg_from_e5m2(unsigned char bits) {
    float number;
    asm("{\n.reg .b32 pair;\n.reg .b16 low, high;\n"
        "cvt.rn.f16x2.e5m2x2 pair, %1;\nmov.b32 {low, high}, pair;\ncvt.f32.f16 %0, low;\n}"
        : "=f"(number) : "h"(static_cast<unsigned short>(bits)));
    return number;
}

// ---- kernel ----
constexpr int BM = 128, BN = 128, BK = 32;  // threadblock tile of C, and its step along K
constexpr int TM = 8, TN = 8;  // micro-tile of a thread
constexpr int LM = BM / TM, LN = BN / TN;  // threads along each side of the block
constexpr int VEC = 8;  // elements of a vector access
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

// loads a vector of A; zeros outside the matrix (cache_shared; vectorize)
__device__ __forceinline__ void load_A(unsigned char *target, const unsigned char *A, int lda,
    int M, int K, int m, int k)
{
    if (m < M && k + VEC - 1 < K) return copy8(target, &A[(long long)m * lda + k]);
    for (int e = 0; e < VEC; ++e)
        target[e] = m < M && k + e < K ? A[(long long)m * lda + k + e] : 0;
}

// loads a vector of B; zeros outside the matrix (cache_shared; vectorize)
__device__ __forceinline__ void load_B(unsigned char *target, const unsigned char *B, int ldb,
    int N, int K, int n, int k)
{
    if (n < N && k + VEC - 1 < K) return copy8(target, &B[(long long)n * ldb + k]);
    for (int e = 0; e < VEC; ++e)
        target[e] = n < N && k + e < K ? B[(long long)n * ldb + k + e] : 0;
}

// copies the elements before `stop` of a vector whose first index is `first` (vectorize;
// fuse_epilogue)
__device__ __forceinline__ void copy8(unsigned short *target, const unsigned short *source,
    int first, int stop)
{
    if (first + VEC - 1 < stop) return copy8(target, source);
    for (int e = 0; e < VEC; ++e) if (first + e < stop) target[e] = source[e];
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
gemm(int M, int N, int K,
    const unsigned char *__restrict__ A, int lda, const unsigned char *__restrict__ B, int ldb,
    unsigned short *__restrict__ C, int ldc, const float *__restrict__ SA,
    const float *__restrict__ SB)
{
    // tiles in shared memory (cache_shared; double_buffer)
    __shared__ alignas(16) unsigned char A_shared[2][BK][BM];
    __shared__ alignas(16) unsigned char B_shared[2][BK][BN];
    static_assert(sizeof(A_shared) + sizeof(B_shared) <= 48 * 1024, "static shared memory: 48 KiB");

    // the block's tile of C (tile)
    const int blocks_n = (N - 1) / BN + 1;
    const int tile_m = (blockIdx.x / blocks_n) * BM;
    const int tile_n = (blockIdx.x % blocks_n) * BN;

    // the thread's position in it (tile; register_block)
    const int tid = threadIdx.y * LN + threadIdx.x;
    const int thread_m = threadIdx.y * TM, thread_n = threadIdx.x * TN;

    // first vector of A and B that this thread copies
    const int A_m = tid / (BK / VEC), A_k = (tid % (BK / VEC)) * VEC;
    const int B_n = tid / (BK / VEC), B_k = (tid % (BK / VEC)) * VEC;

    // registers: operand fragments, accumulators, staging
    alignas(16) float A_frag[2][TM], B_frag[2][TN];
    float acc[TM][TN] = {};
    alignas(16) unsigned char A_next[A_VECTORS][VEC];
    alignas(16) unsigned char B_next[B_VECTORS][VEC];

    // load the first tile (cache_shared)
    #pragma unroll
    for (int vector = 0; vector < A_VECTORS; ++vector) {
        load_A(A_next[vector], A, lda, M, K, tile_m + A_m + vector * A_STEP, A_k);
        for (int e = 0; e < VEC; ++e)
            A_shared[0][A_k + e][A_m + vector * A_STEP] = A_next[vector][e];
    }
    #pragma unroll
    for (int vector = 0; vector < B_VECTORS; ++vector) {
        load_B(B_next[vector], B, ldb, N, K, tile_n + B_n + vector * B_STEP, B_k);
        for (int e = 0; e < VEC; ++e)
            B_shared[0][B_k + e][B_n + vector * B_STEP] = B_next[vector][e];
    }
    int stage = 0;
    __syncthreads();

    // load the first fragments (double_buffer)
    {
        alignas(16) unsigned char A_raw[VEC];
        copy8(A_raw, &A_shared[0][0][thread_m]);
        for (int e = 0; e < VEC; ++e) A_frag[0][e] = gg_from_e4m3(A_raw[e]);
    }
    {
        alignas(16) unsigned char B_raw[VEC];
        copy8(B_raw, &B_shared[0][0][thread_n]);
        for (int e = 0; e < VEC; ++e) B_frag[0][e] = gg_from_e5m2(B_raw[e]);
    }

    // main loop over tiles along K
    for (int tile_k = 0; tile_k < K; tile_k += BK) {
        const int next_k = tile_k + BK, next_stage = 1 - stage;

        // load the next tile early (double_buffer)
        if (tile_m + BM <= M && next_k + BK <= K) {
            #pragma unroll
            for (int vector = 0; vector < A_VECTORS; ++vector) {
                const int m = tile_m + A_m + vector * A_STEP, k = next_k + A_k;
                copy8(A_next[vector], &A[(long long)m * lda + k]);
            }
        } else {
            #pragma unroll
            for (int vector = 0; vector < A_VECTORS; ++vector) {
                load_A(A_next[vector], A, lda, M, K, tile_m + A_m + vector * A_STEP, next_k + A_k);
            }
        }
        if (tile_n + BN <= N && next_k + BK <= K) {
            #pragma unroll
            for (int vector = 0; vector < B_VECTORS; ++vector) {
                const int n = tile_n + B_n + vector * B_STEP, k = next_k + B_k;
                copy8(B_next[vector], &B[(long long)n * ldb + k]);
            }
        } else {
            #pragma unroll
            for (int vector = 0; vector < B_VECTORS; ++vector) {
                load_B(B_next[vector], B, ldb, N, K, tile_n + B_n + vector * B_STEP, next_k + B_k);
            }
        }

        // multiply the tile (register_block)
        #pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (k + 1 < BK) {
                {
                    alignas(16) unsigned char A_raw[VEC];
                    copy8(A_raw, &A_shared[stage][k + 1][thread_m]);
                    for (int e = 0; e < VEC; ++e) A_frag[(k + 1) % 2][e] = gg_from_e4m3(A_raw[e]);
                }
                {
                    alignas(16) unsigned char B_raw[VEC];
                    copy8(B_raw, &B_shared[stage][k + 1][thread_n]);
                    for (int e = 0; e < VEC; ++e) B_frag[(k + 1) % 2][e] = gg_from_e5m2(B_raw[e]);
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
                {
                    alignas(16) unsigned char A_raw[VEC];
                    copy8(A_raw, &A_shared[next_stage][0][thread_m]);
                    for (int e = 0; e < VEC; ++e) A_frag[(k + 1) % 2][e] = gg_from_e4m3(A_raw[e]);
                }
                {
                    alignas(16) unsigned char B_raw[VEC];
                    copy8(B_raw, &B_shared[next_stage][0][thread_n]);
                    for (int e = 0; e < VEC; ++e) B_frag[(k + 1) % 2][e] = gg_from_e5m2(B_raw[e]);
                }
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
        stage = next_stage;
    }

    // the epilogue (vectorize; fuse_epilogue)
    float SB_frag[TN];
    #pragma unroll
    for (int reg_n = 0; reg_n < TN; ++reg_n) {
        const int n = tile_n + thread_n + reg_n;
        SB_frag[reg_n] = n < N ? SB[n] : 0.0f;
    }
    #pragma unroll
    for (int reg_m = 0; reg_m < TM; ++reg_m) {
        const int m = tile_m + thread_m + reg_m;
        if (m < M) {
            #pragma unroll
            for (int reg_n = 0; reg_n < TN; reg_n += VEC) {
                const int n = tile_n + thread_n + reg_n;
                alignas(16) unsigned short out[VEC];
                for (int e = 0; e < VEC; ++e)
                    out[e] = gg_to_bf16(acc[reg_m][reg_n + e] * SA[m] * SB_frag[reg_n + e]);
                copy8(&C[(long long)m * ldc + n], out, n, N);
            }
        }
    }
}

// ---- end of kernel ----
}  // namespace gemm_detail

#ifndef __CUDACC_RTC__
// Checks the requirements, then launches gemm on the stream.
cudaError_t launch_gemm(int M, int N, int K,
    const unsigned char *A, int lda, const unsigned char *B, int ldb, unsigned short *C, int ldc,
    const float *SA, const float *SB, cudaStream_t stream)
{
    using namespace gemm_detail;
    if (M < 0 || N < 0 || K < 0 || M > 2147483503 || N > 2147483503 || K > 2147483567 || lda < K ||
        ldb < K || ldc < N || lda % 8 != 0 || ldb % 8 != 0 || ldc % 8 != 0)
        return cudaErrorInvalidValue;
    if (reinterpret_cast<size_t>(A) % 8 != 0 || reinterpret_cast<size_t>(B) % 8 != 0 ||
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

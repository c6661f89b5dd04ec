// gemm: C[m, n] = acc + residual[m, n], acc = sum over k of A[m, k] * B[k, n] (f32)
//
// schedule (defaults left out):
//     gemm            C[m, n] = A[m, k] * B[k, n]
//     assume          N % 4 == 0
//     tile            m=32 n=64 k=8
//     cache_shared    A[k, m] B[k, n]
//     register_block  m=4 n=8
//     vectorize       C width=4
//     fuse_epilogue   acc + residual[m, n]
// call (extents, leading dimensions: int; scalars: float; tensors: device pointers to float):
//     launch_gemm(M, N, K, A, lda, B, ldb, C, ldc, residual, ldresidual, stream)
// launch:
//     ceil(M / 32) * ceil(N / 64) blocks of 8 x 8 threads; none if C is empty
// requires (leading dimensions count elements):
//     lda >= K, ldb >= N, ldc >= N, ldresidual >= N
//     M <= 2147483599, N <= 2147483567, K <= 2147483623
//     ldc % 4 == 0, N % 4 == 0
//     C aligned to 16 bytes
//     C overlaps none of A, B, residual

namespace gemm_detail {
// Copies 4 contiguous elements in one access.
__device__ __forceinline__ void copy4(float *target, const float *source)
{ *reinterpret_cast<float4 *>(target) = *reinterpret_cast<const float4 *>(source); }

// ---- kernel ----
constexpr int BM = 32, BN = 64, BK = 8;  // threadblock tile of C, and its step along K
constexpr int TM = 4, TN = 8;  // micro-tile of a thread
constexpr int LM = BM / TM, LN = BN / TN;  // threads along each side of the block
constexpr int VEC = 4;  // elements of a vector access
constexpr int THREADS = LM * LN;
constexpr int A_STEP = THREADS / BK, B_STEP = THREADS / BN;  // rows between a thread's copies
constexpr int A_VECTORS = BM / A_STEP, B_VECTORS = BK / B_STEP;  // a thread's copies of a tile
static_assert(BM % TM == 0 && BN % TN == 0, "the micro-tiles fill the tile");
static_assert(THREADS % BK == 0 && A_VECTORS * A_STEP == BM, "the threads copy whole tiles of A");
static_assert(THREADS % BN == 0 && B_VECTORS * B_STEP == BK, "the threads copy whole tiles of B");
static_assert(THREADS <= 1024, "a block has at most 1024 threads");

extern "C" __global__ void __launch_bounds__(THREADS, 2)
gemm(int M, int N, int K,
    const float *__restrict__ A, int lda, const float *__restrict__ B, int ldb,
    float *__restrict__ C, int ldc, const float *__restrict__ residual, int ldresidual)
{
    // tiles in shared memory (cache_shared)
    __shared__ alignas(16) float A_shared[BK][BM];
    __shared__ alignas(16) float B_shared[BK][BN];
    static_assert(sizeof(A_shared) + sizeof(B_shared) <= 48 * 1024, "static shared memory: 48 KiB");

    // the block's tile of C (tile)
    const int blocks_n = (N - 1) / BN + 1;
    const int tile_m = (blockIdx.x / blocks_n) * BM;
    const int tile_n = (blockIdx.x % blocks_n) * BN;

    // the thread's position in it (tile; register_block)
    const int tid = threadIdx.y * LN + threadIdx.x;
    const int thread_m = threadIdx.y * TM, thread_n = threadIdx.x * TN;

    // first element of A and B that this thread copies
    const int A_m = tid / BK, A_k = tid % BK;
    const int B_k = tid / BN, B_n = tid % BN;

    // registers: operand fragments, accumulators
    float A_frag[TM], B_frag[TN];
    float acc[TM][TN] = {};

    // main loop over tiles along K
    for (int tile_k = 0; tile_k < K; tile_k += BK) {
        // load this step's tiles (cache_shared)
        #pragma unroll
        for (int vector = 0; vector < A_VECTORS; ++vector) {
            const int m = tile_m + A_m + vector * A_STEP, k = tile_k + A_k;
            A_shared[A_k][A_m + vector * A_STEP] =
                m < M && k < K ? A[(long long)m * lda + k] : 0.0f;
        }
        #pragma unroll
        for (int vector = 0; vector < B_VECTORS; ++vector) {
            const int k = tile_k + B_k + vector * B_STEP, n = tile_n + B_n;
            B_shared[B_k + vector * B_STEP][B_n] =
                k < K && n < N ? B[(long long)k * ldb + n] : 0.0f;
        }
        __syncthreads();

        // multiply the tile (register_block)
        #pragma unroll
        for (int k = 0; k < BK; ++k) {
            #pragma unroll
            for (int reg_m = 0; reg_m < TM; ++reg_m)
                A_frag[reg_m] = A_shared[k][thread_m + reg_m];
            #pragma unroll
            for (int reg_n = 0; reg_n < TN; ++reg_n)
                B_frag[reg_n] = B_shared[k][thread_n + reg_n];
            #pragma unroll
            for (int reg_m = 0; reg_m < TM; ++reg_m) {
                #pragma unroll
                for (int reg_n = 0; reg_n < TN; ++reg_n)
                    acc[reg_m][reg_n] = fmaf(A_frag[reg_m], B_frag[reg_n], acc[reg_m][reg_n]);
            }
        }
        __syncthreads();
    }

    // the epilogue (vectorize; fuse_epilogue)
    #pragma unroll
    for (int reg_m = 0; reg_m < TM; ++reg_m) {
        const int m = tile_m + thread_m + reg_m;
        if (m < M) {
            #pragma unroll
            for (int reg_n = 0; reg_n < TN; reg_n += VEC) {
                const int n = tile_n + thread_n + reg_n;
                if (n < N) {
                    alignas(16) float out[VEC];
                    for (int e = 0; e < VEC; ++e)
                        out[e] =
                            acc[reg_m][reg_n + e] + residual[(long long)m * ldresidual + n + e];
                    copy4(&C[(long long)m * ldc + n], out);
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
    const float *A, int lda, const float *B, int ldb, float *C, int ldc, const float *residual,
    int ldresidual, cudaStream_t stream)
{
    using namespace gemm_detail;
    if (M < 0 || N < 0 || K < 0 || M > 2147483599 || N > 2147483567 || K > 2147483623 || lda < K ||
        ldb < N || ldc < N || ldresidual < N || ldc % 4 != 0 || N % 4 != 0)
        return cudaErrorInvalidValue;
    if (reinterpret_cast<size_t>(C) % 16 != 0)
        return cudaErrorMisalignedAddress;
    if (M == 0 || N == 0) return cudaSuccess;
    const long long blocks = ((M - 1) / BM + 1LL) * ((N - 1) / BN + 1LL);
    if (blocks > 2147483647) return cudaErrorInvalidConfiguration;
    gemm<<<static_cast<unsigned>(blocks), dim3(LN, LM), 0, stream>>>(
        M, N, K, A, lda, B, ldb, C, ldc, residual, ldresidual);
    return cudaGetLastError();
}
#endif

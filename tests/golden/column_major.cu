// gemm: C[n, m] = alpha * acc + beta * C[n, m], acc = sum over k of A[k, m] * B[n, k] (f32)
//
// schedule (defaults left out):
//     gemm            C[n, m] = A[k, m] * B[n, k]
//     bind            x=n
//     tile            m=32 n=64 k=8
//     cache_shared    A[k, m] B[k, n]
//     register_block  m=4 n=8
//     vectorize       B C width=4
// call (extents, leading dimensions: int; scalars: float; tensors: device pointers to float):
//     launch_gemm(M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, stream)
// launch:
//     ceil(M / 32) * ceil(N / 64) blocks of 8 x 8 threads; none if C is empty
//     K = 0 if alpha == 0: as in BLAS, A and B are not read
// requires (leading dimensions count elements):
//     lda >= M, ldb >= K, ldc >= M
//     M <= 2147483599, N <= 2147483567, K <= 2147483623
//     ldb % 4 == 0, ldc % 4 == 0
//     B, C aligned to 16 bytes
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
constexpr int THREADS = LM * LN;
// rows between a thread's copies
constexpr int A_STEP = THREADS / BM, B_STEP = THREADS / (BK / VEC);
constexpr int A_VECTORS = BK / A_STEP, B_VECTORS = BN / B_STEP;  // a thread's copies of a tile
static_assert(BM % TM == 0 && BN % TN == 0, "the micro-tiles fill the tile");
static_assert(THREADS % BM == 0 && A_VECTORS * A_STEP == BK, "the threads copy whole tiles of A");
static_assert(THREADS % (BK / VEC) == 0 && B_VECTORS * B_STEP == BN,
    "the threads copy whole tiles of B");
static_assert(THREADS <= 1024, "a block has at most 1024 threads");

// loads a vector of B; zeros outside the matrix (cache_shared; vectorize)
__device__ __forceinline__ void load_B(float *target, const float *B, int ldb, int N, int K, int n,
    int k)
{
    if (n < N && k + VEC - 1 < K) return copy4(target, &B[(long long)n * ldb + k]);
    for (int e = 0; e < VEC; ++e)
        target[e] = n < N && k + e < K ? B[(long long)n * ldb + k + e] : 0.0f;
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
    // tiles in shared memory (cache_shared)
    __shared__ alignas(16) float A_shared[BK][BM];
    __shared__ alignas(16) float B_shared[BK][BN];
    static_assert(sizeof(A_shared) + sizeof(B_shared) <= 48 * 1024, "static shared memory: 48 KiB");

    // the block's tile of C (tile)
    const int blocks_n = (N - 1) / BN + 1;
    const int tile_m = (blockIdx.x / blocks_n) * BM;
    const int tile_n = (blockIdx.x % blocks_n) * BN;

    // the thread's position in it (bind; tile; register_block)
    const int tid = threadIdx.y * LN + threadIdx.x;
    const int thread_m = threadIdx.y * TM, thread_n = threadIdx.x * PN;

    // first vector of A and B that this thread copies
    const int A_k = tid / BM, A_m = tid % BM;
    const int B_n = tid / (BK / VEC), B_k = (tid % (BK / VEC)) * VEC;

    // registers: operand fragments, accumulators
    float A_frag[TM];
    alignas(16) float B_frag[TN];
    float acc[TM][TN] = {};

    // main loop over tiles along K
    for (int tile_k = 0; tile_k < K; tile_k += BK) {
        // load this step's tiles (cache_shared)
        #pragma unroll
        for (int vector = 0; vector < A_VECTORS; ++vector) {
            const int k = tile_k + A_k + vector * A_STEP, m = tile_m + A_m;
            A_shared[A_k + vector * A_STEP][A_m] =
                k < K && m < M ? A[(long long)k * lda + m] : 0.0f;
        }
        #pragma unroll
        for (int vector = 0; vector < B_VECTORS; ++vector) {
            alignas(16) float B_next[VEC];
            load_B(B_next, B, ldb, N, K, tile_n + B_n + vector * B_STEP, tile_k + B_k);
            for (int e = 0; e < VEC; ++e)
                B_shared[B_k + e][B_n + vector * B_STEP] = B_next[e];
        }
        __syncthreads();

        // multiply the tile (register_block)
        #pragma unroll
        for (int k = 0; k < BK; ++k) {
            #pragma unroll
            for (int reg_m = 0; reg_m < TM; ++reg_m)
                A_frag[reg_m] = A_shared[k][thread_m + reg_m];
            #pragma unroll
            for (int reg_n = 0; reg_n < TN; reg_n += VEC)
                copy4(&B_frag[reg_n], &B_shared[k][thread_n + reg_n * LN]);
            #pragma unroll
            for (int reg_m = 0; reg_m < TM; ++reg_m) {
                #pragma unroll
                for (int reg_n = 0; reg_n < TN; ++reg_n)
                    acc[reg_m][reg_n] = fmaf(A_frag[reg_m], B_frag[reg_n], acc[reg_m][reg_n]);
            }
        }
        __syncthreads();
    }

    // the epilogue (vectorize)
    #pragma unroll
    for (int reg_n = 0; reg_n < TN; ++reg_n) {
        const int n = tile_n + thread_n + (reg_n / PN) * (PN * LN) + reg_n % PN;
        if (n < N) {
            #pragma unroll
            for (int reg_m = 0; reg_m < TM; reg_m += VEC) {
                const int m = tile_m + thread_m + reg_m;
                alignas(16) float out[VEC];
                alignas(16) float old[VEC] = {};
                if (beta != 0.0f) copy4(old, &C[(long long)n * ldc + m], m, M);
                for (int e = 0; e < VEC; ++e)
                    out[e] = fmaf(beta, old[e], alpha * acc[reg_m + e][reg_n]);
                copy4(&C[(long long)n * ldc + m], out, m, M);
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
    if (M < 0 || N < 0 || K < 0 || M > 2147483599 || N > 2147483567 || K > 2147483623 || lda < M ||
        ldb < K || ldc < M || ldb % 4 != 0 || ldc % 4 != 0)
        return cudaErrorInvalidValue;
    if (reinterpret_cast<size_t>(B) % 16 != 0 || reinterpret_cast<size_t>(C) % 16 != 0)
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

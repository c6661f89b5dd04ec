// gemm: C[m, n] = alpha * acc + beta * C[m, n], acc = sum over k of A[m, k] * B[k, n] (f32)
//
// schedule (defaults left out):
//     gemm            C[m, n] = A[m, k] * B[k, n]
//     tile            m=32 n=32 k=16
//     cache_shared    A[k, m] B[k, n]
//     register_block  m=2 n=2
//     vectorize       A.global width=4
//     vectorize       B.global width=2
//     pad             A B by=1
//     double_buffer   A
// call (extents, leading dimensions: int; scalars: float; tensors: device pointers to float):
//     launch_gemm(M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, stream)
// launch:
//     ceil(M / 32) * ceil(N / 32) blocks of 16 x 16 threads; none if C is empty
//     K = 0 if alpha == 0: as in BLAS, A and B are not read
// requires (leading dimensions count elements):
//     lda >= K, ldb >= N, ldc >= N
//     M <= 2147483599, N <= 2147483599, K <= 2147483599
//     lda % 4 == 0, ldb % 2 == 0
//     A aligned to 16 bytes
//     B aligned to 8 bytes
//     C overlaps none of A, B

namespace gemm_detail {
// Copies 2 contiguous elements in one access.
__device__ __forceinline__ void copy2(float *target, const float *source)
{ *reinterpret_cast<float2 *>(target) = *reinterpret_cast<const float2 *>(source); }
// Copies 4 contiguous elements in one access.
__device__ __forceinline__ void copy4(float *target, const float *source)
{ *reinterpret_cast<float4 *>(target) = *reinterpret_cast<const float4 *>(source); }

// ---- kernel ----
constexpr int BM = 32, BN = 32, BK = 16;  // threadblock tile of C, and its step along K
constexpr int TM = 2, TN = 2;  // micro-tile of a thread
constexpr int LM = BM / TM, LN = BN / TN;  // threads along each side of the block
constexpr int A_VEC = 4, B_VEC = 2;  // elements of a vector access
constexpr int A_PAD = 1, B_PAD = 1;  // padding elements of each row
constexpr int THREADS = LM * LN;
static_assert(BM % TM == 0 && BN % TN == 0, "the micro-tiles fill the tile");
static_assert(THREADS * B_VEC == BK * BN, "the threads copy whole tiles");
static_assert(THREADS <= 1024, "a block has at most 1024 threads");

// loads a vector of A; zeros outside the matrix (cache_shared; vectorize A.global width=4)
__device__ __forceinline__ void load_A(float *target, const float *A, int lda, int M, int K, int m,
    int k)
{
    if (m < M && k + A_VEC - 1 < K) return copy4(target, &A[(long long)m * lda + k]);
    for (int e = 0; e < A_VEC; ++e)
        target[e] = m < M && k + e < K ? A[(long long)m * lda + k + e] : 0.0f;
}

// loads a vector of B; zeros outside the matrix (cache_shared; vectorize B.global width=2)
__device__ __forceinline__ void load_B(float *target, const float *B, int ldb, int K, int N, int k,
    int n)
{
    if (k < K && n + B_VEC - 1 < N) return copy2(target, &B[(long long)k * ldb + n]);
    for (int e = 0; e < B_VEC; ++e)
        target[e] = k < K && n + e < N ? B[(long long)k * ldb + n + e] : 0.0f;
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
gemm(int M, int N, int K,
    float alpha, const float *__restrict__ A, int lda, const float *__restrict__ B, int ldb,
    float beta, float *__restrict__ C, int ldc)
{
    // tiles in shared memory (cache_shared; pad; double_buffer)
    __shared__ alignas(16) float A_shared[2][BK][BM + A_PAD];
    __shared__ alignas(16) float B_shared[BK][BN + B_PAD];
    static_assert(sizeof(A_shared) + sizeof(B_shared) <= 48 * 1024, "static shared memory: 48 KiB");

    // the block's tile of C (tile)
    const int blocks_n = (N - 1) / BN + 1;
    const int tile_m = (blockIdx.x / blocks_n) * BM;
    const int tile_n = (blockIdx.x % blocks_n) * BN;

    // the thread's position in it (tile; register_block)
    const int tid = threadIdx.y * LN + threadIdx.x;
    const int thread_m = threadIdx.y * TM, thread_n = threadIdx.x * TN;

    // first vector of A and B that this thread copies
    const int A_m = tid / (BK / A_VEC), A_k = (tid % (BK / A_VEC)) * A_VEC;
    const int B_k = tid / (BN / B_VEC), B_n = (tid % (BN / B_VEC)) * B_VEC;

    // registers: operand fragments, accumulators, staging
    float A_frag[TM], B_frag[TN];
    float acc[TM][TN] = {};
    alignas(16) float A_next[A_VEC];

    // load the first tile (cache_shared)
    if (A_m < BM) {
        load_A(A_next, A, lda, M, K, tile_m + A_m, A_k);
        for (int e = 0; e < A_VEC; ++e) A_shared[0][A_k + e][A_m] = A_next[e];
    }
    int stage = 0;

    // main loop over tiles along K
    for (int tile_k = 0; tile_k < K; tile_k += BK) {
        // load this step's tiles (cache_shared)
        {
            alignas(16) float B_next[B_VEC];
            load_B(B_next, B, ldb, K, N, tile_k + B_k, tile_n + B_n);
            for (int e = 0; e < B_VEC; ++e) B_shared[B_k][B_n + e] = B_next[e];
        }
        const int next_k = tile_k + BK, next_stage = 1 - stage;

        // load the next tile early (double_buffer)
        if (A_m < BM) load_A(A_next, A, lda, M, K, tile_m + A_m, next_k + A_k);
        __syncthreads();

        // multiply the tile (register_block)
        #pragma unroll
        for (int k = 0; k < BK; ++k) {
            #pragma unroll
            for (int reg_m = 0; reg_m < TM; ++reg_m)
                A_frag[reg_m] = A_shared[stage][k][thread_m + reg_m];
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

        // store the prefetched tile to shared memory (double_buffer)
        if (A_m < BM)
            for (int e = 0; e < A_VEC; ++e) A_shared[next_stage][A_k + e][A_m] = A_next[e];
        __syncthreads();
        stage = next_stage;
    }

    // the epilogue
    #pragma unroll
    for (int reg_m = 0; reg_m < TM; ++reg_m) {
        const int m = tile_m + thread_m + reg_m;
        if (m < M) {
            #pragma unroll
            for (int reg_n = 0; reg_n < TN; ++reg_n) {
                const int n = tile_n + thread_n + reg_n;
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
    float alpha, const float *A, int lda, const float *B, int ldb, float beta, float *C, int ldc,
    cudaStream_t stream)
{
    using namespace gemm_detail;
    if (M < 0 || N < 0 || K < 0 || M > 2147483599 || N > 2147483599 || K > 2147483599 || lda < K ||
        ldb < N || ldc < N || lda % 4 != 0 || ldb % 2 != 0)
        return cudaErrorInvalidValue;
    if (reinterpret_cast<size_t>(A) % 16 != 0 || reinterpret_cast<size_t>(B) % 8 != 0)
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

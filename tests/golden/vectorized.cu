// gemm: C[m, n] = relu(acc + bias[n]), acc = sum over k of A[m, k] * B[k, n] (f32)
//
// schedule (defaults left out):
//     gemm            C[m, n] = A[m, k] * B[k, n]
//     tile            m=128 n=128 k=8
//     cache_shared    A[k, m] B[k, n]
//     register_block  m=8 n=8
//     vectorize       A B C width=4
//     pad             A by=4
//     double_buffer   A B
//     fuse_epilogue   relu(acc + bias[n])
// call (extents, leading dimensions: int; scalars: float; tensors: device pointers to float):
//     launch_gemm(M, N, K, A, lda, B, ldb, C, ldc, bias, stream)
// launch:
//     ceil(M / 128) * ceil(N / 128) blocks of 16 x 16 threads; none if C is empty
// requires (leading dimensions count elements):
//     lda >= K, ldb >= N, ldc >= N
//     M <= 2147483503, N <= 2147483503, K <= 2147483615
//     lda % 4 == 0, ldb % 4 == 0, ldc % 4 == 0
//     A, B, C aligned to 16 bytes
//     C overlaps none of A, B, bias

namespace gemm_detail {
// Copies 4 contiguous elements in one access.
__device__ __forceinline__ void copy4(float *target, const float *source)
{ *reinterpret_cast<float4 *>(target) = *reinterpret_cast<const float4 *>(source); }

// ---- kernel ----
constexpr int BM = 128, BN = 128, BK = 8;  // threadblock tile of C, and its step along K
constexpr int TM = 8, TN = 8;  // micro-tile of a thread
constexpr int PM = 4, PN = 4;  // in vectors of this many adjacent elements
constexpr int LM = BM / TM, LN = BN / TN;  // threads along each side of the block
constexpr int VEC = 4;  // elements of a vector access
constexpr int A_PAD = 4;  // padding elements of each row
constexpr int THREADS = LM * LN;
static_assert(BM % TM == 0 && BN % TN == 0, "the micro-tiles fill the tile");
static_assert(THREADS * VEC == BM * BK && THREADS * VEC == BK * BN, "the threads copy whole tiles");
static_assert(THREADS <= 1024, "a block has at most 1024 threads");

// loads a vector of A or B; zeros outside the matrix (cache_shared; vectorize)
__device__ __forceinline__ void load4(float *target, const float *X, int ldx, int rows, int cols,
    int i, int j)
{
    if (i < rows && j + VEC - 1 < cols) return copy4(target, &X[(long long)i * ldx + j]);
    for (int e = 0; e < VEC; ++e)
        target[e] = i < rows && j + e < cols ? X[(long long)i * ldx + j + e] : 0.0f;
}

// copies the elements before `stop` of a vector whose first index is `first` (vectorize;
// fuse_epilogue)
__device__ __forceinline__ void copy4(float *target, const float *source, int first, int stop) {
    if (first + VEC - 1 < stop) return copy4(target, source);
    for (int e = 0; e < VEC; ++e) if (first + e < stop) target[e] = source[e];
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
gemm(int M, int N, int K,
    const float *__restrict__ A, int lda, const float *__restrict__ B, int ldb,
    float *__restrict__ C, int ldc, const float *__restrict__ bias)
{
    // tiles in shared memory (cache_shared; pad; double_buffer)
    __shared__ alignas(16) float A_shared[2][BK][BM + A_PAD];
    __shared__ alignas(16) float B_shared[2][BK][BN];
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
    const int B_k = tid / (BN / VEC), B_n = (tid % (BN / VEC)) * VEC;

    // registers: operand fragments, accumulators, staging
    alignas(16) float A_frag[TM], B_frag[TN];
    float acc[TM][TN] = {};
    alignas(16) float A_next[VEC], B_next[VEC];

    // load the first tile (cache_shared)
    load4(A_next, A, lda, M, K, tile_m + A_m, A_k);
    for (int e = 0; e < VEC; ++e) A_shared[0][A_k + e][A_m] = A_next[e];
    load4(B_next, B, ldb, K, N, B_k, tile_n + B_n);
    copy4(&B_shared[0][B_k][B_n], B_next);
    int stage = 0;
    __syncthreads();

    // main loop over tiles along K
    for (int tile_k = 0; tile_k < K; tile_k += BK) {
        const int next_k = tile_k + BK, next_stage = 1 - stage;

        // load the next tile early (double_buffer)
        load4(A_next, A, lda, M, K, tile_m + A_m, next_k + A_k);
        load4(B_next, B, ldb, K, N, next_k + B_k, tile_n + B_n);

        // multiply the tile (register_block)
        #pragma unroll
        for (int k = 0; k < BK; ++k) {
            #pragma unroll
            for (int reg_n = 0; reg_n < TN; reg_n += VEC)
                copy4(&B_frag[reg_n], &B_shared[stage][k][thread_n + reg_n * LN]);
            #pragma unroll
            for (int reg_m = 0; reg_m < TM; reg_m += VEC)
                copy4(&A_frag[reg_m], &A_shared[stage][k][thread_m + reg_m * LM]);
            #pragma unroll
            for (int reg_m = 0; reg_m < TM; ++reg_m) {
                #pragma unroll
                for (int reg_n = 0; reg_n < TN; ++reg_n)
                    acc[reg_m][reg_n] = fmaf(A_frag[reg_m], B_frag[reg_n], acc[reg_m][reg_n]);
            }
        }

        // store the prefetched tile to shared memory (double_buffer)
        for (int e = 0; e < VEC; ++e) A_shared[next_stage][A_k + e][A_m] = A_next[e];
        copy4(&B_shared[next_stage][B_k][B_n], B_next);
        __syncthreads();
        stage = next_stage;
    }

    // the epilogue (vectorize; fuse_epilogue)
    float bias_frag[TN];
    #pragma unroll
    for (int reg_n = 0; reg_n < TN; ++reg_n) {
        const int n = tile_n + thread_n + (reg_n / PN) * (PN * LN) + reg_n % PN;
        bias_frag[reg_n] = n < N ? bias[n] : 0.0f;
    }
    #pragma unroll
    for (int reg_m = 0; reg_m < TM; ++reg_m) {
        const int m = tile_m + thread_m + (reg_m / PM) * (PM * LM) + reg_m % PM;
        if (m < M) {
            #pragma unroll
            for (int reg_n = 0; reg_n < TN; reg_n += VEC) {
                const int n = tile_n + thread_n + reg_n * LN;
                alignas(16) float out[VEC];
                for (int e = 0; e < VEC; ++e) {
                    const float value = acc[reg_m][reg_n + e] + bias_frag[reg_n + e];
                    out[e] = value < 0.0f ? 0.0f : value;
                }
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
    const float *A, int lda, const float *B, int ldb, float *C, int ldc, const float *bias,
    cudaStream_t stream)
{
    using namespace gemm_detail;
    if (M < 0 || N < 0 || K < 0 || M > 2147483503 || N > 2147483503 || K > 2147483615 || lda < K ||
        ldb < N || ldc < N || lda % 4 != 0 || ldb % 4 != 0 || ldc % 4 != 0)
        return cudaErrorInvalidValue;
    if (reinterpret_cast<size_t>(A) % 16 != 0 || reinterpret_cast<size_t>(B) % 16 != 0 ||
        reinterpret_cast<size_t>(C) % 16 != 0)
        return cudaErrorMisalignedAddress;
    if (M == 0 || N == 0) return cudaSuccess;
    const long long blocks = ((M - 1) / BM + 1LL) * ((N - 1) / BN + 1LL);
    if (blocks > 2147483647) return cudaErrorInvalidConfiguration;
    gemm<<<static_cast<unsigned>(blocks), dim3(LN, LM), 0, stream>>>(
        M, N, K, A, lda, B, ldb, C, ldc, bias);
    return cudaGetLastError();
}
#endif

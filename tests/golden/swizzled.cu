// gemm: C[m, n] = alpha * acc + beta * C[m, n], acc = sum over k of A[m, k] * B[k, n] (f32)
//
// schedule (defaults left out):
//     gemm            C[m, n] = A[m, k] * B[k, n]
//     tile            m=128 n=128 k=8
//     cache_shared    A[k, m] B[k, n]
//     register_block  m=8 n=8
//     vectorize       A B C width=4
//     swizzle         A
//     double_buffer   A A.register B B.register
//     unroll          tile_k=2
//     raster          group=8
// call (extents, leading dimensions: int; scalars: float; tensors: device pointers to float):
//     launch_gemm(M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, stream)
// launch:
//     ceil(M / 128) * ceil(N / 128) blocks of 16 x 16 threads; none if C is empty
//     K = 0 if alpha == 0: as in BLAS, A and B are not read
// requires (leading dimensions count elements):
//     lda >= K, ldb >= N, ldc >= N
//     M <= 2147483503, N <= 2147483503, K <= 2147483615
//     lda % 4 == 0, ldb % 4 == 0, ldc % 4 == 0
//     A, B, C aligned to 16 bytes
//     C overlaps none of A, B

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
constexpr int GROUP = 8;  // block rows in a group
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
    // tiles in shared memory (cache_shared; swizzle; double_buffer)
    __shared__ alignas(16) float A_shared[2][BK][BM];
    __shared__ alignas(16) float B_shared[2][BK][BN];
    static_assert(sizeof(A_shared) + sizeof(B_shared) <= 48 * 1024, "static shared memory: 48 KiB");

    // the block's tile of C (tile; raster)
    const int blocks_m = (M - 1) / BM + 1, blocks_n = (N - 1) / BN + 1;
    const int full_group = blocks_m < GROUP ? blocks_m : GROUP;
    const int group = (blockIdx.x / (full_group * blocks_n)) * full_group;
    const int group_rows = blocks_m - group < full_group ? blocks_m - group : full_group;
    const int tile_in_group = blockIdx.x % (full_group * blocks_n);
    const int tile_m = (group + tile_in_group % group_rows) * BM;
    const int tile_n = (tile_in_group / group_rows) * BN;

    // the thread's position in it (tile; register_block)
    const int tid = threadIdx.y * LN + threadIdx.x;
    const int thread_m = threadIdx.y * PM, thread_n = threadIdx.x * PN;

    // first vector of A and B that this thread copies
    const int A_m = tid / (BK / VEC), A_k = (tid % (BK / VEC)) * VEC;
    const int B_k = tid / (BN / VEC), B_n = (tid % (BN / VEC)) * VEC;

    // registers: operand fragments, accumulators, staging
    alignas(16) float A_frag[2][TM], B_frag[2][TN];
    float acc[TM][TN] = {};
    alignas(16) float A_next[VEC], B_next[VEC];

    // load the first tile (cache_shared)
    load4(A_next, A, lda, M, K, tile_m + A_m, A_k);
    for (int e = 0; e < VEC; ++e)
        A_shared[0][A_k + e][A_m ^ ((A_k / 4) * 16)] = A_next[e];
    load4(&B_shared[0][B_k][B_n], B, ldb, K, N, B_k, tile_n + B_n);
    __syncthreads();

    // load the first fragments (double_buffer)
    #pragma unroll
    for (int reg_m = 0; reg_m < TM; reg_m += VEC)
        copy4(&A_frag[0][reg_m], &A_shared[0][0][thread_m + reg_m * LM]);
    #pragma unroll
    for (int reg_n = 0; reg_n < TN; reg_n += VEC)
        copy4(&B_frag[0][reg_n], &B_shared[0][0][thread_n + reg_n * LN]);

    // main loop over tiles along K, 2 at a time (unroll)
    for (int round_k = 0; round_k < K; round_k += 2 * BK) {
        #pragma unroll
        for (int stage = 0; stage < 2; ++stage) {
            const int tile_k = round_k + stage * BK;
            if (tile_k >= K) break;
            const int next_k = tile_k + BK, next_stage = 1 - stage;

            // load the next tile early (double_buffer)
            load4(A_next, A, lda, M, K, tile_m + A_m, next_k + A_k);
            load4(B_next, B, ldb, K, N, next_k + B_k, tile_n + B_n);

            // multiply the tile (register_block)
            #pragma unroll
            for (int k = 0; k < BK; ++k) {
                if (k + 1 < BK) {
                    #pragma unroll
                    for (int reg_m = 0; reg_m < TM; reg_m += VEC) {
                        copy4(&A_frag[(k + 1) % 2][reg_m],
                            &A_shared[stage][k + 1]
                            [(thread_m ^ (((k + 1) / 4) * 16)) + reg_m * LM]);
                    }
                    #pragma unroll
                    for (int reg_n = 0; reg_n < TN; reg_n += VEC) {
                        copy4(&B_frag[(k + 1) % 2][reg_n],
                            &B_shared[stage][k + 1][thread_n + reg_n * LN]);
                    }
                } else {
                    // store the prefetched tile to shared memory, then read ahead into it
                    // (double_buffer)
                    for (int e = 0; e < VEC; ++e)
                        A_shared[next_stage][A_k + e][A_m ^ ((A_k / 4) * 16)] = A_next[e];
                    copy4(&B_shared[next_stage][B_k][B_n], B_next);
                    __syncthreads();
                    #pragma unroll
                    for (int reg_m = 0; reg_m < TM; reg_m += VEC) {
                        copy4(&A_frag[(k + 1) % 2][reg_m],
                            &A_shared[next_stage][0][thread_m + reg_m * LM]);
                    }
                    #pragma unroll
                    for (int reg_n = 0; reg_n < TN; reg_n += VEC) {
                        copy4(&B_frag[(k + 1) % 2][reg_n],
                            &B_shared[next_stage][0][thread_n + reg_n * LN]);
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
        }
    }

    // the epilogue (vectorize)
    #pragma unroll
    for (int reg_m = 0; reg_m < TM; ++reg_m) {
        const int m = tile_m + thread_m + (reg_m / PM) * (PM * LM) + reg_m % PM;
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
    if (M < 0 || N < 0 || K < 0 || M > 2147483503 || N > 2147483503 || K > 2147483615 || lda < K ||
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

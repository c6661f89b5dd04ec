// gemm: C[b, m, n] = alpha * acc + beta * C[b, m, n], acc = sum over k of A[b, m, k] * B[b, k, n]
// (f32)
//
// schedule (defaults left out):
//     gemm            C[b, m, n] = A[b, m, k] * B[b, k, n]
//     tile            m=64 n=64 k=8
//     cache_shared    A[k, m] B[k, n]
//     register_block  m=8 n=8
//     vectorize       A B C width=4
//     pad             A by=4
//     double_buffer   A B
//     raster          group=4
// call (extents, leading dimensions: int; strides: long long; scalars: float; tensors: device
// pointers to float):
//     launch_gemm(M, N, K, size_b, alpha, A, lda, stride_A_b, B, ldb, stride_B_b, beta, C, ldc,
//         stride_C_b, stream)
// launch:
//     ceil(M / 64) * ceil(N / 64) * size_b blocks of 8 x 8 threads; none if C is empty
//     K = 0 if alpha == 0: as in BLAS, A and B are not read
// requires (leading dimensions and strides count elements):
//     lda >= K, ldb >= N, ldc >= N
//     M <= 2147483567, N <= 2147483567, K <= 2147483615
//     lda % 4 == 0, stride_A_b % 4 == 0, ldb % 4 == 0, stride_B_b % 4 == 0, ldc % 4 == 0,
//     stride_C_b % 4 == 0
//     A, B, C aligned to 16 bytes
//     C overlaps none of A, B
//     no two elements of C are one

namespace gemm_detail {
// Copies 4 contiguous elements in one access.
__device__ __forceinline__ void copy4(float *target, const float *source)
{ *reinterpret_cast<float4 *>(target) = *reinterpret_cast<const float4 *>(source); }

// ---- kernel ----
constexpr int BM = 64, BN = 64, BK = 8;  // threadblock tile of C, and its step along K
constexpr int TM = 8, TN = 8;  // micro-tile of a thread
constexpr int PM = 4, PN = 4;  // in vectors of this many adjacent elements
constexpr int LM = BM / TM, LN = BN / TN;  // threads along each side of the block
constexpr int VEC = 4;  // elements of a vector access
constexpr int A_PAD = 4;  // padding elements of each row
constexpr int GROUP = 4;  // block rows in a group
constexpr int THREADS = LM * LN;
// rows between a thread's copies
constexpr int A_STEP = THREADS / (BK / VEC), B_STEP = THREADS / (BN / VEC);
constexpr int A_VECTORS = BM / A_STEP, B_VECTORS = BK / B_STEP;  // a thread's copies of a tile
static_assert(BM % TM == 0 && BN % TN == 0, "the micro-tiles fill the tile");
static_assert(THREADS % (BK / VEC) == 0 && A_VECTORS * A_STEP == BM,
    "the threads copy whole tiles of A");
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
gemm(int M, int N, int K, int size_b,
    float alpha, const float *__restrict__ A, int lda, long long stride_A_b,
    const float *__restrict__ B, int ldb, long long stride_B_b, float beta, float *__restrict__ C,
    int ldc, long long stride_C_b)
{
    // tiles in shared memory (cache_shared; pad; double_buffer)
    __shared__ alignas(16) float A_shared[2][BK][BM + A_PAD];
    __shared__ alignas(16) float B_shared[2][BK][BN];
    static_assert(sizeof(A_shared) + sizeof(B_shared) <= 48 * 1024, "static shared memory: 48 KiB");

    // the block's b, and its matrices
    const int blocks_m = (M - 1) / BM + 1, blocks_n = (N - 1) / BN + 1;
    const int matrix_tiles = blocks_m * blocks_n;
    const int b = blockIdx.x / matrix_tiles;
    A += stride_A_b * b;
    B += stride_B_b * b;
    C += stride_C_b * b;

    // the block's tile of C (tile; raster)
    const int tile = blockIdx.x % matrix_tiles;
    const int full_group = blocks_m < GROUP ? blocks_m : GROUP;
    const int group = (tile / (full_group * blocks_n)) * full_group;
    const int group_rows = blocks_m - group < full_group ? blocks_m - group : full_group;
    const int tile_in_group = tile % (full_group * blocks_n);
    const int tile_m = (group + tile_in_group % group_rows) * BM;
    const int tile_n = (tile_in_group / group_rows) * BN;

    // the thread's position in it (tile; register_block)
    const int tid = threadIdx.y * LN + threadIdx.x;
    const int thread_m = threadIdx.y * PM, thread_n = threadIdx.x * PN;

    // first vector of A and B that this thread copies
    const int A_m = tid / (BK / VEC), A_k = (tid % (BK / VEC)) * VEC;
    const int B_k = tid / (BN / VEC), B_n = (tid % (BN / VEC)) * VEC;

    // registers: operand fragments, accumulators, staging
    alignas(16) float A_frag[TM], B_frag[TN];
    float acc[TM][TN] = {};
    alignas(16) float A_next[A_VECTORS][VEC], B_next[B_VECTORS][VEC];

    // load the first tile (cache_shared)
    #pragma unroll
    for (int vector = 0; vector < A_VECTORS; ++vector) {
        load4(A_next[vector], A, lda, M, K, tile_m + A_m + vector * A_STEP, A_k);
        for (int e = 0; e < VEC; ++e)
            A_shared[0][A_k + e][A_m + vector * A_STEP] = A_next[vector][e];
    }
    #pragma unroll
    for (int vector = 0; vector < B_VECTORS; ++vector) {
        load4(&B_shared[0][B_k + vector * B_STEP][B_n], B, ldb, K, N, B_k + vector * B_STEP,
            tile_n + B_n);
    }
    int stage = 0;
    __syncthreads();

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
            #pragma unroll
            for (int reg_m = 0; reg_m < TM; reg_m += VEC)
                copy4(&A_frag[reg_m], &A_shared[stage][k][thread_m + reg_m * LM]);
            #pragma unroll
            for (int reg_n = 0; reg_n < TN; reg_n += VEC)
                copy4(&B_frag[reg_n], &B_shared[stage][k][thread_n + reg_n * LN]);
            #pragma unroll
            for (int reg_m = 0; reg_m < TM; ++reg_m) {
                #pragma unroll
                for (int reg_n = 0; reg_n < TN; ++reg_n)
                    acc[reg_m][reg_n] = fmaf(A_frag[reg_m], B_frag[reg_n], acc[reg_m][reg_n]);
            }
        }

        // store the prefetched tile to shared memory (double_buffer)
        #pragma unroll
        for (int vector = 0; vector < A_VECTORS; ++vector) {
            for (int e = 0; e < VEC; ++e)
                A_shared[next_stage][A_k + e][A_m + vector * A_STEP] = A_next[vector][e];
        }
        #pragma unroll
        for (int vector = 0; vector < B_VECTORS; ++vector)
            copy4(&B_shared[next_stage][B_k + vector * B_STEP][B_n], B_next[vector]);
        __syncthreads();
        stage = next_stage;
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
cudaError_t launch_gemm(int M, int N, int K, int size_b,
    float alpha, const float *A, int lda, long long stride_A_b, const float *B, int ldb,
    long long stride_B_b, float beta, float *C, int ldc, long long stride_C_b, cudaStream_t stream)
{
    using namespace gemm_detail;
    if (M < 0 || N < 0 || K < 0 || size_b < 0 || M > 2147483567 || N > 2147483567 ||
        K > 2147483615 || lda < K || ldb < N || ldc < N || lda % 4 != 0 || stride_A_b % 4 != 0 ||
        ldb % 4 != 0 || stride_B_b % 4 != 0 || ldc % 4 != 0 || stride_C_b % 4 != 0)
        return cudaErrorInvalidValue;
    if (reinterpret_cast<size_t>(A) % 16 != 0 || reinterpret_cast<size_t>(B) % 16 != 0 ||
        reinterpret_cast<size_t>(C) % 16 != 0)
        return cudaErrorMisalignedAddress;
    if (M == 0 || N == 0 || size_b == 0) return cudaSuccess;
    if (alpha == 0) K = 0;  // as in BLAS
    const long long tiles = ((M - 1) / BM + 1LL) * ((N - 1) / BN + 1LL);
    if (tiles > 2147483647 / size_b) return cudaErrorInvalidConfiguration;
    const long long blocks = tiles * size_b;
    gemm<<<static_cast<unsigned>(blocks), dim3(LN, LM), 0, stream>>>(
        M, N, K, size_b, alpha, A, lda, stride_A_b, B, ldb, stride_B_b, beta, C, ldc, stride_C_b);
    return cudaGetLastError();
}
#endif

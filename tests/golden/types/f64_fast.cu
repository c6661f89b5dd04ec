// gemm: C[m, n] = alpha * acc + beta * C[m, n], acc = sum over k of A[m, k] * B[k, n] (f64)
//
// schedule (defaults left out):
//     gemm            C[m, n] = A[m, k] * B[k, n]
//     dtype           A=f64 B=f64 C=f64 acc=f64
//     tile            m=128 n=128 k=8
//     cache_shared    A[k, m] B[k, n]
//     warp_tile       m=64 n=32
//     register_block  m=8 n=8
//     vectorize       A B C width=2
//     pad             A by=2
//     double_buffer   A A.register B B.register
//     raster          group=8
// call (extents, leading dimensions: int; scalars: double; tensors: device pointers to double):
//     launch_gemm(M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, stream)
// launch:
//     ceil(M / 128) * ceil(N / 128) blocks of 256 threads; none if C is empty
//     K = 0 if alpha == 0: as in BLAS, A and B are not read
// requires (leading dimensions count elements):
//     lda >= K, ldb >= N, ldc >= N
//     M <= 2147483503, N <= 2147483503, K <= 2147483615
//     lda % 2 == 0, ldb % 2 == 0, ldc % 2 == 0
//     A, B, C aligned to 16 bytes
//     C overlaps none of A, B

namespace gemm_detail {
// Copies 2 contiguous elements in one access.
__device__ __forceinline__ void copy2(double *target, const double *source)
{ *reinterpret_cast<double2 *>(target) = *reinterpret_cast<const double2 *>(source); }

// ---- kernel ----
constexpr int BM = 128, BN = 128, BK = 8;  // threadblock tile of C, and its step along K
constexpr int WM = 64, WN = 32;  // warp tile
constexpr int TM = 8, TN = 8;  // micro-tile of a thread
constexpr int PM = 2, PN = 2;  // in vectors of this many adjacent elements
constexpr int LM = WM / TM, LN = WN / TN;  // threads along each side of a warp
constexpr int VEC = 2;  // elements of a vector access
constexpr int A_PAD = 2;  // padding elements of each row
constexpr int GROUP = 8;  // block rows in a group
constexpr int THREADS = (BM / WM) * (BN / WN) * 32;
// rows between a thread's copies
constexpr int A_STEP = THREADS / (BK / VEC), B_STEP = THREADS / (BN / VEC);
constexpr int A_VECTORS = BM / A_STEP, B_VECTORS = BK / B_STEP;  // a thread's copies of a tile
static_assert(WM % TM == 0 && WN % TN == 0, "the micro-tiles fill the tile");
static_assert(LM * LN == 32, "a warp's threads fill its tile");
static_assert(THREADS % (BK / VEC) == 0 && A_VECTORS * A_STEP == BM,
    "the threads copy whole tiles of A");
static_assert(THREADS % (BN / VEC) == 0 && B_VECTORS * B_STEP == BK,
    "the threads copy whole tiles of B");
static_assert(THREADS <= 1024, "a block has at most 1024 threads");

// loads a vector of A or B; zeros outside the matrix (cache_shared; vectorize)
__device__ __forceinline__ void load2(double *target, const double *X, int ldx, int rows, int cols,
    int i, int j)
{
    if (i < rows && j + VEC - 1 < cols) return copy2(target, &X[(long long)i * ldx + j]);
    for (int e = 0; e < VEC; ++e)
        target[e] = i < rows && j + e < cols ? X[(long long)i * ldx + j + e] : 0.0;
}

// copies the elements before `stop` of a vector whose first index is `first` (vectorize)
__device__ __forceinline__ void copy2(double *target, const double *source, int first, int stop) {
    if (first + VEC - 1 < stop) return copy2(target, source);
    for (int e = 0; e < VEC; ++e) if (first + e < stop) target[e] = source[e];
}

extern "C" __global__ void __launch_bounds__(THREADS)
gemm(int M, int N, int K,
    double alpha, const double *__restrict__ A, int lda, const double *__restrict__ B, int ldb,
    double beta, double *__restrict__ C, int ldc)
{
    // tiles in shared memory (cache_shared; pad; double_buffer)
    __shared__ alignas(16) double A_shared[2][BK][BM + A_PAD];
    __shared__ alignas(16) double B_shared[2][BK][BN];
    static_assert(sizeof(A_shared) + sizeof(B_shared) <= 48 * 1024, "static shared memory: 48 KiB");

    // the block's tile of C (tile; raster)
    const int blocks_m = (M - 1) / BM + 1, blocks_n = (N - 1) / BN + 1;
    const int full_group = blocks_m < GROUP ? blocks_m : GROUP;
    const int group = (blockIdx.x / (full_group * blocks_n)) * full_group;
    const int group_rows = blocks_m - group < full_group ? blocks_m - group : full_group;
    const int tile_in_group = blockIdx.x % (full_group * blocks_n);
    const int tile_m = (group + tile_in_group % group_rows) * BM;
    const int tile_n = (tile_in_group / group_rows) * BN;

    // the thread's position in it (tile; warp_tile; register_block)
    const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    const int thread_m = (warp / (BN / WN)) * WM + (lane / LN) * PM;
    const int thread_n = (warp % (BN / WN)) * WN + (lane % LN) * PN;

    // first vector of A and B that this thread copies
    const int A_m = tid / (BK / VEC), A_k = (tid % (BK / VEC)) * VEC;
    const int B_k = tid / (BN / VEC), B_n = (tid % (BN / VEC)) * VEC;

    // registers: operand fragments, accumulators, staging
    alignas(16) double A_frag[2][TM], B_frag[2][TN];
    double acc[TM][TN] = {};
    alignas(16) double A_next[A_VECTORS][VEC], B_next[B_VECTORS][VEC];

    // load the first tile (cache_shared)
    #pragma unroll
    for (int vector = 0; vector < A_VECTORS; ++vector) {
        load2(A_next[vector], A, lda, M, K, tile_m + A_m + vector * A_STEP, A_k);
        for (int e = 0; e < VEC; ++e)
            A_shared[0][A_k + e][A_m + vector * A_STEP] = A_next[vector][e];
    }
    #pragma unroll
    for (int vector = 0; vector < B_VECTORS; ++vector) {
        load2(&B_shared[0][B_k + vector * B_STEP][B_n], B, ldb, K, N, B_k + vector * B_STEP,
            tile_n + B_n);
    }
    int stage = 0;
    __syncthreads();

    // load the first fragments (double_buffer)
    #pragma unroll
    for (int reg_m = 0; reg_m < TM; reg_m += VEC)
        copy2(&A_frag[0][reg_m], &A_shared[0][0][thread_m + reg_m * LM]);
    #pragma unroll
    for (int reg_n = 0; reg_n < TN; reg_n += VEC)
        copy2(&B_frag[0][reg_n], &B_shared[0][0][thread_n + reg_n * LN]);

    // main loop over tiles along K
    for (int tile_k = 0; tile_k < K; tile_k += BK) {
        const int next_k = tile_k + BK, next_stage = 1 - stage;

        // load the next tile early (double_buffer)
        if (tile_m + BM <= M && next_k + BK <= K) {
            #pragma unroll
            for (int vector = 0; vector < A_VECTORS; ++vector) {
                const int m = tile_m + A_m + vector * A_STEP, k = next_k + A_k;
                copy2(A_next[vector], &A[(long long)m * lda + k]);
            }
        } else {
            #pragma unroll
            for (int vector = 0; vector < A_VECTORS; ++vector) {
                load2(A_next[vector], A, lda, M, K, tile_m + A_m + vector * A_STEP, next_k + A_k);
            }
        }
        if (next_k + BK <= K && tile_n + BN <= N) {
            #pragma unroll
            for (int vector = 0; vector < B_VECTORS; ++vector) {
                const int k = next_k + B_k + vector * B_STEP, n = tile_n + B_n;
                copy2(B_next[vector], &B[(long long)k * ldb + n]);
            }
        } else {
            #pragma unroll
            for (int vector = 0; vector < B_VECTORS; ++vector) {
                load2(B_next[vector], B, ldb, K, N, next_k + B_k + vector * B_STEP, tile_n + B_n);
            }
        }

        // multiply the tile (register_block)
        #pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (k + 1 < BK) {
                #pragma unroll
                for (int reg_m = 0; reg_m < TM; reg_m += VEC) {
                    copy2(&A_frag[(k + 1) % 2][reg_m],
                        &A_shared[stage][k + 1][thread_m + reg_m * LM]);
                }
                #pragma unroll
                for (int reg_n = 0; reg_n < TN; reg_n += VEC) {
                    copy2(&B_frag[(k + 1) % 2][reg_n],
                        &B_shared[stage][k + 1][thread_n + reg_n * LN]);
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
                for (int vector = 0; vector < B_VECTORS; ++vector)
                    copy2(&B_shared[next_stage][B_k + vector * B_STEP][B_n], B_next[vector]);
                __syncthreads();
                #pragma unroll
                for (int reg_m = 0; reg_m < TM; reg_m += VEC) {
                    copy2(&A_frag[(k + 1) % 2][reg_m],
                        &A_shared[next_stage][0][thread_m + reg_m * LM]);
                }
                #pragma unroll
                for (int reg_n = 0; reg_n < TN; reg_n += VEC) {
                    copy2(&B_frag[(k + 1) % 2][reg_n],
                        &B_shared[next_stage][0][thread_n + reg_n * LN]);
                }
            }
            #pragma unroll
            for (int reg_m = 0; reg_m < TM; ++reg_m) {
                #pragma unroll
                for (int reg_n = 0; reg_n < TN; ++reg_n) {
                    acc[reg_m][reg_n] =
                        fma(A_frag[k % 2][reg_m], B_frag[k % 2][reg_n], acc[reg_m][reg_n]);
                }
            }
        }
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
                alignas(16) double out[VEC];
                alignas(16) double old[VEC] = {};
                if (beta != 0.0) copy2(old, &C[(long long)m * ldc + n], n, N);
                for (int e = 0; e < VEC; ++e)
                    out[e] = fma(beta, old[e], alpha * acc[reg_m][reg_n + e]);
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
    double alpha, const double *A, int lda, const double *B, int ldb, double beta, double *C,
    int ldc, cudaStream_t stream)
{
    using namespace gemm_detail;
    if (M < 0 || N < 0 || K < 0 || M > 2147483503 || N > 2147483503 || K > 2147483615 || lda < K ||
        ldb < N || ldc < N || lda % 2 != 0 || ldb % 2 != 0 || ldc % 2 != 0)
        return cudaErrorInvalidValue;
    if (reinterpret_cast<size_t>(A) % 16 != 0 || reinterpret_cast<size_t>(B) % 16 != 0 ||
        reinterpret_cast<size_t>(C) % 16 != 0)
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

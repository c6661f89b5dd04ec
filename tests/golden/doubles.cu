// gemm: C[m, n] = alpha * acc + beta * C[m, n], acc = sum over k of A[k, m] * B[n, k] (f64)
//
// schedule (defaults left out):
//     gemm            C[m, n] = A[k, m] * B[n, k]
//     dtype           A=f64 B=f64 C=f64 acc=f64
//     tile            m=48 n=32 k=16
//     cache_shared    A[k, m] B[n, k]
//     warp_tile       m=24 n=16
//     tensor_core     via=mma
//     vectorize       A.global B.global C width=2
//     pad             A B by=4
//     double_buffer   A A.register B B.register
// call (extents, leading dimensions: int; scalars: double; tensors: device pointers to double):
//     launch_gemm(M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, stream)
// launch:
//     ceil(M / 48) * ceil(N / 32) blocks of 128 threads; none if C is empty
//     K = 0 if alpha == 0: as in BLAS, A and B are not read
// requires (leading dimensions count elements):
//     lda >= M, ldb >= K, ldc >= N
//     M <= 2147483583, N <= 2147483599, K <= 2147483599
//     lda % 2 == 0, ldb % 2 == 0, ldc % 2 == 0
//     A, B, C aligned to 16 bytes
//     C overlaps none of A, B

namespace gemm_detail {
// Copies 2 contiguous elements in one access.
__device__ __forceinline__ void copy2(double *target, const double *source)
{ *reinterpret_cast<double2 *>(target) = *reinterpret_cast<const double2 *>(source); }

// mma.m8n8k4: acc += a * b of warp fragments, f64; adjacent accumulators in a row.
__device__ __forceinline__ void gg_mma_m8n8k4_f64(
    double *acc, const double *a, const double *b)
{ asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 "
               "{%0, %1}, {%2}, {%3}, {%0, %1};"
               : "+d"(acc[0]), "+d"(acc[1])
               : "d"(a[0]), "d"(b[0])); }

// ---- kernel ----
constexpr int BM = 48, BN = 32, BK = 16;  // threadblock tile of C, and its step along K
constexpr int WM = 24, WN = 16;  // warp tile
constexpr int TM = 3, TN = 4;  // micro-tile of a thread
constexpr int PN = 2;  // in vectors of this many adjacent elements
constexpr int LM = WM / TM, LN = WN / TN;  // threads along each side of a warp
constexpr int IM = 8, IN = 8, IK = 4;  // tile of one instruction
constexpr int FM = WM / IM, FN = WN / IN;  // fragments of a warp
constexpr int VEC = 2;  // elements of a vector access
constexpr int A_PAD = 4, B_PAD = 4;  // padding elements of each row
constexpr int THREADS = (BM / WM) * (BN / WN) * 32;
constexpr int B_STEP = THREADS / (BK / VEC);  // rows between a thread's copies
// a thread's copies of a tile
constexpr int A_VECTORS = (BK * (BM / VEC) - 1) / THREADS + 1, B_VECTORS = BN / B_STEP;
static_assert(WM % TM == 0 && WN % TN == 0, "the micro-tiles fill the tile");
static_assert(LM * LN == 32, "a warp's threads fill its tile");
static_assert(BK % IK == 0, "the steps fill the tile");
static_assert(THREADS % (BK / VEC) == 0 && B_VECTORS * B_STEP == BN,
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

extern "C" __global__ void __launch_bounds__(THREADS, 2)
gemm(int M, int N, int K,
    double alpha, const double *__restrict__ A, int lda, const double *__restrict__ B, int ldb,
    double beta, double *__restrict__ C, int ldc)
{
    // tiles in shared memory (cache_shared; pad; double_buffer)
    __shared__ alignas(16) double A_shared[2][BK][BM + A_PAD];
    __shared__ alignas(16) double B_shared[2][BN][BK + B_PAD];
    static_assert(sizeof(A_shared) + sizeof(B_shared) <= 48 * 1024, "static shared memory: 48 KiB");

    // the block's tile of C (tile)
    const int blocks_n = (N - 1) / BN + 1;
    const int tile_m = (blockIdx.x / blocks_n) * BM;
    const int tile_n = (blockIdx.x % blocks_n) * BN;

    // the thread's position in it (tile; warp_tile; tensor_core)
    const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    const int thread_m = (warp / (BN / WN)) * WM + lane / LN;
    const int thread_n = (warp % (BN / WN)) * WN + (lane % LN) * PN;
    const int A_lane_m = (warp / (BN / WN)) * WM + lane / 4, A_lane_k = lane % 4;
    const int B_lane_n = (warp % (BN / WN)) * WN + lane / 4, B_lane_k = lane % 4;

    // first vector of A and B that this thread copies
    const int B_n = tid / (BK / VEC), B_k = (tid % (BK / VEC)) * VEC;

    // registers: operand fragments, accumulators, staging
    double A_frag[2][FM], B_frag[2][FN];
    double acc[TM][TN] = {};
    alignas(16) double A_next[A_VECTORS][VEC], B_next[B_VECTORS][VEC];

    // load the first tile (cache_shared)
    #pragma unroll
    for (int vector = 0; vector < A_VECTORS; ++vector) {
        const int A_vector = tid + vector * THREADS, A_k = A_vector / (BM / VEC);
        const int A_m = (A_vector % (BM / VEC)) * VEC;
        load2(&A_shared[0][A_k][A_m], A, lda, K, M, A_k, tile_m + A_m);
    }
    #pragma unroll
    for (int vector = 0; vector < B_VECTORS; ++vector) {
        load2(&B_shared[0][B_n + vector * B_STEP][B_k], B, ldb, N, K,
            tile_n + B_n + vector * B_STEP, B_k);
    }
    int stage = 0;
    __syncthreads();

    // load the first fragments (double_buffer)
    #pragma unroll
    for (int frag_m = 0; frag_m < FM; ++frag_m)
        A_frag[0][frag_m] = A_shared[0][A_lane_k][A_lane_m + frag_m * IM];
    #pragma unroll
    for (int frag_n = 0; frag_n < FN; ++frag_n)
        B_frag[0][frag_n] = B_shared[0][B_lane_n + frag_n * IN][B_lane_k];

    // main loop over tiles along K
    for (int tile_k = 0; tile_k < K; tile_k += BK) {
        const int next_k = tile_k + BK, next_stage = 1 - stage;

        // load the next tile early (double_buffer)
        if (next_k + BK <= K && tile_m + BM <= M) {
            #pragma unroll
            for (int vector = 0; vector < A_VECTORS; ++vector) {
                const int A_vector = tid + vector * THREADS, A_k = A_vector / (BM / VEC);
                const int A_m = (A_vector % (BM / VEC)) * VEC;
                const int k = next_k + A_k, m = tile_m + A_m;
                copy2(A_next[vector], &A[(long long)k * lda + m]);
            }
        } else {
            #pragma unroll
            for (int vector = 0; vector < A_VECTORS; ++vector) {
                const int A_vector = tid + vector * THREADS, A_k = A_vector / (BM / VEC);
                const int A_m = (A_vector % (BM / VEC)) * VEC;
                load2(A_next[vector], A, lda, K, M, next_k + A_k, tile_m + A_m);
            }
        }
        if (tile_n + BN <= N && next_k + BK <= K) {
            #pragma unroll
            for (int vector = 0; vector < B_VECTORS; ++vector) {
                const int n = tile_n + B_n + vector * B_STEP, k = next_k + B_k;
                copy2(B_next[vector], &B[(long long)n * ldb + k]);
            }
        } else {
            #pragma unroll
            for (int vector = 0; vector < B_VECTORS; ++vector) {
                load2(B_next[vector], B, ldb, N, K, tile_n + B_n + vector * B_STEP, next_k + B_k);
            }
        }

        // multiply the tile (tensor_core)
        #pragma unroll
        for (int k = 0; k < BK; k += IK) {
            if (k + IK < BK) {
                #pragma unroll
                for (int frag_m = 0; frag_m < FM; ++frag_m) {
                    A_frag[(k / IK + 1) % 2][frag_m] =
                        A_shared[stage][A_lane_k + k + IK][A_lane_m + frag_m * IM];
                }
                #pragma unroll
                for (int frag_n = 0; frag_n < FN; ++frag_n) {
                    B_frag[(k / IK + 1) % 2][frag_n] =
                        B_shared[stage][B_lane_n + frag_n * IN][B_lane_k + k + IK];
                }
            } else {
                // store the prefetched tile to shared memory, then read ahead into it
                // (double_buffer)
                #pragma unroll
                for (int vector = 0; vector < A_VECTORS; ++vector) {
                    const int A_vector = tid + vector * THREADS, A_k = A_vector / (BM / VEC);
                    const int A_m = (A_vector % (BM / VEC)) * VEC;
                    copy2(&A_shared[next_stage][A_k][A_m], A_next[vector]);
                }
                #pragma unroll
                for (int vector = 0; vector < B_VECTORS; ++vector)
                    copy2(&B_shared[next_stage][B_n + vector * B_STEP][B_k], B_next[vector]);
                __syncthreads();
                #pragma unroll
                for (int frag_m = 0; frag_m < FM; ++frag_m) {
                    A_frag[(k / IK + 1) % 2][frag_m] =
                        A_shared[next_stage][A_lane_k][A_lane_m + frag_m * IM];
                }
                #pragma unroll
                for (int frag_n = 0; frag_n < FN; ++frag_n) {
                    B_frag[(k / IK + 1) % 2][frag_n] =
                        B_shared[next_stage][B_lane_n + frag_n * IN][B_lane_k];
                }
            }
            #pragma unroll
            for (int frag_m = 0; frag_m < FM; ++frag_m) {
                #pragma unroll
                for (int frag_n = 0; frag_n < FN; ++frag_n) {
                    gg_mma_m8n8k4_f64(&acc[frag_m][frag_n * 2], &A_frag[k / IK % 2][frag_m],
                        &B_frag[k / IK % 2][frag_n]);
                }
            }
        }
        stage = next_stage;
    }

    // the epilogue (vectorize)
    #pragma unroll
    for (int reg_m = 0; reg_m < TM; ++reg_m) {
        const int m = tile_m + thread_m + reg_m * LM;
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
    if (M < 0 || N < 0 || K < 0 || M > 2147483583 || N > 2147483599 || K > 2147483599 || lda < M ||
        ldb < K || ldc < N || lda % 2 != 0 || ldb % 2 != 0 || ldc % 2 != 0)
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

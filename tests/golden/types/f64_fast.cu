// gemm: C[m, n] = alpha * acc + beta * C[m, n], acc = sum over k of A[m, k] * B[k, n] (f64)
//
// schedule:
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
//     ceil(M / 128) * ceil(N / 128) blocks of 256 threads; none where C is empty
//     K = 0 if alpha == 0: as in BLAS, A and B are not read
// requires (leading dimensions count elements):
//     lda >= K, ldb >= N, ldc >= N
//     M <= 2147483503, N <= 2147483503, K <= 2147483615
//     lda % 2 == 0, ldb % 2 == 0, ldc % 2 == 0
//     A, B, C aligned to 16 bytes
//     C overlaps none of A, B

// ---- kernel ----

constexpr int BM = 128, BN = 128, BK = 8;  // the block's tile of C, in steps of BK
constexpr int WM = 64, WN = 32;  // a warp's share of it
constexpr int TM = 8, TN = 8;  // a thread's share
constexpr int PM = 2, PN = 2;  // in pieces of this many neighbours
constexpr int LM = WM / TM, LN = WN / TN;  // threads along each side of a warp
constexpr int GROUP = 8;  // block rows in a band
constexpr int THREADS = (BM / WM) * (BN / WN) * 32;
static_assert(WM % TM == 0 && WN % TN == 0, "the micro-tiles fill the tile");
static_assert(LM * LN == 32, "a warp's threads fill its tile");
static_assert(THREADS <= 1024, "a block has at most 1024 threads");

extern "C" __global__ void __launch_bounds__(THREADS)
gemm(int M, int N, int K,
    double alpha, const double *__restrict__ A, int lda, const double *__restrict__ B, int ldb,
    double beta, double *__restrict__ C, int ldc)
{
    // tiles in shared memory (cache_shared A[k, m] B[k, n]; pad A by=2;
    // double_buffer A A.register B B.register)
    __shared__ alignas(16) double A_shared[2][BK][BM + 2];
    __shared__ alignas(16) double B_shared[2][BK][BN];

    // the block's tile of C (tile m=128 n=128 k=8; raster group=8)
    const int blocks_m = (M - 1) / BM + 1, blocks_n = (N - 1) / BN + 1;
    const int band_rows = blocks_m < GROUP ? blocks_m : GROUP;
    const int band = (blockIdx.x / (band_rows * blocks_n)) * band_rows;
    const int height = blocks_m - band < band_rows ? blocks_m - band : band_rows;
    const int within = blockIdx.x % (band_rows * blocks_n);
    const int tile_m = (band + within % height) * BM;
    const int tile_n = (within / height) * BN;

    // the thread's place in it (tile m=128 n=128 k=8; warp_tile m=64 n=32;
    // register_block m=8 n=8)
    const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    const int thread_m = (warp / (BN / WN)) * WM + (lane / LN) * PM;
    const int thread_n = (warp % (BN / WN)) * WN + (lane % LN) * PN;

    // its first piece of each tile that it copies
    const int A_m = tid / (BK / 2), A_k = (tid % (BK / 2)) * 2;
    const int B_k = tid / (BN / 2), B_n = (tid % (BN / 2)) * 2;

    // what it keeps in registers
    alignas(16) double A_frag[2][TM], B_frag[2][TN];
    double acc[TM][TN] = {};
    alignas(16) double A_next[2][2], B_next[2][2];

    // the first tile (cache_shared A[k, m] B[k, n])
    #pragma unroll
    for (int piece = 0; piece < 2; ++piece) {
        const int m = tile_m + A_m + piece * (THREADS / (BK / 2)), k = A_k;
        if (m < M && k + 1 < K) {
            *reinterpret_cast<double2 *>(&A_next[piece][0]) =
                *reinterpret_cast<const double2 *>(&A[(long long)m * lda + k]);
        } else {
            #pragma unroll
            for (int e = 0; e < 2; ++e) {
                A_next[piece][e] = m < M && k + e < K ? A[(long long)m * lda + k + e] : 0.0;
            }
        }
        #pragma unroll
        for (int e = 0; e < 2; ++e) {
            A_shared[0][A_k + e][A_m + piece * (THREADS / (BK / 2))] = A_next[piece][e];
        }
    }
    #pragma unroll
    for (int piece = 0; piece < 2; ++piece) {
        const int k = B_k + piece * (THREADS / (BN / 2)), n = tile_n + B_n;
        if (k < K && n + 1 < N) {
            *reinterpret_cast<double2 *>(&B_shared[0][B_k + piece * (THREADS / (BN / 2))][B_n]) =
                *reinterpret_cast<const double2 *>(&B[(long long)k * ldb + n]);
        } else {
            #pragma unroll
            for (int e = 0; e < 2; ++e) {
                B_shared[0][B_k + piece * (THREADS / (BN / 2))][B_n + e] =
                    k < K && n + e < N ? B[(long long)k * ldb + n + e] : 0.0;
            }
        }
    }
    int stage = 0;
    __syncthreads();

    // the first fragments (double_buffer A A.register B B.register)
    #pragma unroll
    for (int reg_m = 0; reg_m < TM; reg_m += 2) {
        *reinterpret_cast<double2 *>(&A_frag[0][reg_m]) =
            *reinterpret_cast<const double2 *>(&A_shared[0][0][thread_m + reg_m * LM]);
    }
    #pragma unroll
    for (int reg_n = 0; reg_n < TN; reg_n += 2) {
        *reinterpret_cast<double2 *>(&B_frag[0][reg_n]) =
            *reinterpret_cast<const double2 *>(&B_shared[0][0][thread_n + reg_n * LN]);
    }
    for (int tile_k = 0; tile_k < K; tile_k += BK) {
        const int next_k = tile_k + BK;
        const int fill = 1 - stage;

        // load the next tile early (double_buffer A A.register B B.register)
        if (tile_m + BM <= M && next_k + BK <= K) {
            #pragma unroll
            for (int piece = 0; piece < 2; ++piece) {
                const int m = tile_m + A_m + piece * (THREADS / (BK / 2)), k = next_k + A_k;
                *reinterpret_cast<double2 *>(&A_next[piece][0]) =
                    *reinterpret_cast<const double2 *>(&A[(long long)m * lda + k]);
            }
        } else {
            #pragma unroll
            for (int piece = 0; piece < 2; ++piece) {
                const int m = tile_m + A_m + piece * (THREADS / (BK / 2)), k = next_k + A_k;
                if (m < M && k + 1 < K) {
                    *reinterpret_cast<double2 *>(&A_next[piece][0]) =
                        *reinterpret_cast<const double2 *>(&A[(long long)m * lda + k]);
                } else {
                    #pragma unroll
                    for (int e = 0; e < 2; ++e) {
                        A_next[piece][e] = m < M && k + e < K ? A[(long long)m * lda + k + e] : 0.0;
                    }
                }
            }
        }
        if (next_k + BK <= K && tile_n + BN <= N) {
            #pragma unroll
            for (int piece = 0; piece < 2; ++piece) {
                const int k = next_k + B_k + piece * (THREADS / (BN / 2)), n = tile_n + B_n;
                *reinterpret_cast<double2 *>(&B_next[piece][0]) =
                    *reinterpret_cast<const double2 *>(&B[(long long)k * ldb + n]);
            }
        } else {
            #pragma unroll
            for (int piece = 0; piece < 2; ++piece) {
                const int k = next_k + B_k + piece * (THREADS / (BN / 2)), n = tile_n + B_n;
                if (k < K && n + 1 < N) {
                    *reinterpret_cast<double2 *>(&B_next[piece][0]) =
                        *reinterpret_cast<const double2 *>(&B[(long long)k * ldb + n]);
                } else {
                    #pragma unroll
                    for (int e = 0; e < 2; ++e) {
                        B_next[piece][e] = k < K && n + e < N ? B[(long long)k * ldb + n + e] : 0.0;
                    }
                }
            }
        }

        // multiply the tile (register_block m=8 n=8)
        #pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (k + 1 < BK) {
                #pragma unroll
                for (int reg_m = 0; reg_m < TM; reg_m += 2) {
                    *reinterpret_cast<double2 *>(&A_frag[(k + 1) % 2][reg_m]) =
                        *reinterpret_cast<const double2 *>(
                            &A_shared[stage][k + 1][thread_m + reg_m * LM]);
                }
                #pragma unroll
                for (int reg_n = 0; reg_n < TN; reg_n += 2) {
                    *reinterpret_cast<double2 *>(&B_frag[(k + 1) % 2][reg_n]) =
                        *reinterpret_cast<const double2 *>(
                            &B_shared[stage][k + 1][thread_n + reg_n * LN]);
                }
            } else {
                // store it late, and read ahead into it (double_buffer A A.register B B.register)
                #pragma unroll
                for (int piece = 0; piece < 2; ++piece) {
                    #pragma unroll
                    for (int e = 0; e < 2; ++e) {
                        A_shared[fill][A_k + e][A_m + piece * (THREADS / (BK / 2))] =
                            A_next[piece][e];
                    }
                }
                #pragma unroll
                for (int piece = 0; piece < 2; ++piece) {
                    *reinterpret_cast<double2 *>(
                        &B_shared[fill][B_k + piece * (THREADS / (BN / 2))][B_n]) =
                        *reinterpret_cast<const double2 *>(&B_next[piece][0]);
                }
                __syncthreads();
                #pragma unroll
                for (int reg_m = 0; reg_m < TM; reg_m += 2) {
                    *reinterpret_cast<double2 *>(&A_frag[(k + 1) % 2][reg_m]) =
                        *reinterpret_cast<const double2 *>(
                            &A_shared[fill][0][thread_m + reg_m * LM]);
                }
                #pragma unroll
                for (int reg_n = 0; reg_n < TN; reg_n += 2) {
                    *reinterpret_cast<double2 *>(&B_frag[(k + 1) % 2][reg_n]) =
                        *reinterpret_cast<const double2 *>(
                            &B_shared[fill][0][thread_n + reg_n * LN]);
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
        stage = fill;
    }

    // the epilogue (vectorize A B C width=2)
    #pragma unroll
    for (int reg_m = 0; reg_m < TM; ++reg_m) {
        const int m = tile_m + thread_m + (reg_m / PM) * (PM * LM) + reg_m % PM;
        if (m < M) {
            #pragma unroll
            for (int reg_n = 0; reg_n < TN; reg_n += 2) {
                const int n = tile_n + thread_n + reg_n * LN;
                alignas(16) double out[2];
                alignas(16) double old[2] = {};
                if (beta != 0.0) {
                    if (n + 1 < N) {
                        *reinterpret_cast<double2 *>(&old[0]) =
                            *reinterpret_cast<const double2 *>(&C[(long long)m * ldc + n]);
                    } else {
                        #pragma unroll
                        for (int e = 0; e < 2; ++e) {
                            if (n + e < N) old[e] = C[(long long)m * ldc + n + e];
                        }
                    }
                }
                #pragma unroll
                for (int e = 0; e < 2; ++e) {
                    out[e] = fma(beta, old[e], alpha * acc[reg_m][reg_n + e]);
                }
                if (n + 1 < N) {
                    *reinterpret_cast<double2 *>(&C[(long long)m * ldc + n]) =
                        *reinterpret_cast<const double2 *>(&out[0]);
                } else {
                    #pragma unroll
                    for (int e = 0; e < 2; ++e) {
                        if (n + e < N) C[(long long)m * ldc + n + e] = out[e];
                    }
                }
            }
        }
    }
}

// ---- end of kernel ----

#ifndef __CUDACC_RTC__
// Checks the requirements, then launches gemm on the stream.
cudaError_t launch_gemm(int M, int N, int K,
    double alpha, const double *A, int lda, const double *B, int ldb,
    double beta, double *C, int ldc, cudaStream_t stream)
{
    if (M < 0 || N < 0 || K < 0 || M > 2147483503 || N > 2147483503 || K > 2147483615 ||
        lda < K || ldb < N || ldc < N || lda % 2 != 0 || ldb % 2 != 0 || ldc % 2 != 0)
        return cudaErrorInvalidValue;
    if (reinterpret_cast<size_t>(A) % 16 != 0 || reinterpret_cast<size_t>(B) % 16 != 0 ||
        reinterpret_cast<size_t>(C) % 16 != 0)
        return cudaErrorMisalignedAddress;
    if (M == 0 || N == 0) return cudaSuccess;
    if (alpha == 0) K = 0;  // as in BLAS
    const long long blocks = ((M - 1) / 128 + 1LL) * ((N - 1) / 128 + 1LL);
    if (blocks > 2147483647) return cudaErrorInvalidConfiguration;
    gemm<<<static_cast<unsigned>(blocks), 256, 0, stream>>>(
        M, N, K, alpha, A, lda, B, ldb, beta, C, ldc);
    return cudaGetLastError();
}
#endif

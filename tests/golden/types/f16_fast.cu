// gemm: C[m, n] = alpha * acc + beta * C[m, n], acc = sum over k of A[m, k] * B[k, n] (A f16, B
// f16, C f16, sums f32)
//
// schedule:
//     gemm            C[m, n] = A[m, k] * B[k, n]
//     dtype           A=f16 B=f16 C=f16
//     tile            m=128 n=256 k=16
//     cache_shared    A[k, m] B[k, n]
//     warp_tile       m=64 n=64
//     register_block  m=8 n=16
//     vectorize       A B C width=8
//     swizzle         A
//     double_buffer   A A.register B B.register
//     raster          group=8
// call (extents, leading dimensions: int; scalars: float; tensors: device pointers to unsigned
// short (f16 bits)):
//     launch_gemm(M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, stream)
// launch:
//     ceil(M / 128) * ceil(N / 256) blocks of 256 threads; none where C is empty
//     K = 0 if alpha == 0: as in BLAS, A and B are not read
// requires (leading dimensions count elements):
//     lda >= K, ldb >= N, ldc >= N
//     M <= 2147483503, N <= 2147483375, K <= 2147483599
//     lda % 8 == 0, ldb % 8 == 0, ldc % 8 == 0
//     A, B, C aligned to 16 bytes
//     C overlaps none of A, B

// The number that the bits of an f16 stand for.
__device__ __forceinline__ float gg_from_f16(unsigned short bits)
{
    float number;
    asm("cvt.f32.f16 %0, %1;" : "=f"(number) : "h"(bits));
    return number;
}

// The bits of the f16 nearest to a number, ties to even.
__device__ __forceinline__ unsigned short gg_to_f16(float number)
{
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(number));
    return bits;
}

// ---- kernel ----

constexpr int BM = 128, BN = 256, BK = 16;  // the block's tile of C, in steps of BK
constexpr int WM = 64, WN = 64;  // a warp's share of it
constexpr int TM = 8, TN = 16;  // a thread's share
constexpr int PN = 8;  // in pieces of this many neighbours
constexpr int LM = WM / TM, LN = WN / TN;  // threads along each side of a warp
constexpr int GROUP = 8;  // block rows in a band
constexpr int THREADS = (BM / WM) * (BN / WN) * 32;
static_assert(WM % TM == 0 && WN % TN == 0, "the micro-tiles fill the tile");
static_assert(LM * LN == 32, "a warp's threads fill its tile");
static_assert(THREADS <= 1024, "a block has at most 1024 threads");

extern "C" __global__ void __launch_bounds__(THREADS)
gemm(int M, int N, int K,
    float alpha, const unsigned short *__restrict__ A, int lda,
    const unsigned short *__restrict__ B, int ldb, float beta, unsigned short *__restrict__ C,
    int ldc)
{
    // tiles in shared memory (cache_shared A[k, m] B[k, n]; swizzle A;
    // double_buffer A A.register B B.register)
    __shared__ alignas(16) unsigned short A_shared[2][BK][BM];
    __shared__ alignas(16) unsigned short B_shared[2][BK][BN];

    // the block's tile of C (tile m=128 n=256 k=16; raster group=8)
    const int blocks_m = (M - 1) / BM + 1, blocks_n = (N - 1) / BN + 1;
    const int band_rows = blocks_m < GROUP ? blocks_m : GROUP;
    const int band = (blockIdx.x / (band_rows * blocks_n)) * band_rows;
    const int height = blocks_m - band < band_rows ? blocks_m - band : band_rows;
    const int within = blockIdx.x % (band_rows * blocks_n);
    const int tile_m = (band + within % height) * BM;
    const int tile_n = (within / height) * BN;

    // the thread's place in it (tile m=128 n=256 k=16; warp_tile m=64 n=64;
    // register_block m=8 n=16)
    const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    const int thread_m = (warp / (BN / WN)) * WM + (lane / LN) * TM;
    const int thread_n = (warp % (BN / WN)) * WN + (lane % LN) * PN;

    // its first piece of each tile that it copies
    const int A_m = tid / (BK / 8), A_k = (tid % (BK / 8)) * 8;
    const int B_k = tid / (BN / 8), B_n = (tid % (BN / 8)) * 8;

    // what it keeps in registers
    alignas(16) float A_frag[2][TM], B_frag[2][TN];
    float acc[TM][TN] = {};
    alignas(16) unsigned short A_next[8], B_next[2][8];

    // the first tile (cache_shared A[k, m] B[k, n])
    {
        const int m = tile_m + A_m, k = A_k;
        if (m < M && k + 7 < K) {
            *reinterpret_cast<uint4 *>(&A_next[0]) =
                *reinterpret_cast<const uint4 *>(&A[(long long)m * lda + k]);
        } else {
            #pragma unroll
            for (int e = 0; e < 8; ++e) {
                A_next[e] = m < M && k + e < K ? A[(long long)m * lda + k + e] : 0;
            }
        }
        #pragma unroll
        for (int e = 0; e < 8; ++e) {
            A_shared[0][A_k + e][A_m ^ ((A_k / 8) * 16)] = A_next[e];
        }
    }
    #pragma unroll
    for (int piece = 0; piece < 2; ++piece) {
        const int k = B_k + piece * (THREADS / (BN / 8)), n = tile_n + B_n;
        if (k < K && n + 7 < N) {
            *reinterpret_cast<uint4 *>(&B_shared[0][B_k + piece * (THREADS / (BN / 8))][B_n]) =
                *reinterpret_cast<const uint4 *>(&B[(long long)k * ldb + n]);
        } else {
            #pragma unroll
            for (int e = 0; e < 8; ++e) {
                B_shared[0][B_k + piece * (THREADS / (BN / 8))][B_n + e] =
                    k < K && n + e < N ? B[(long long)k * ldb + n + e] : 0;
            }
        }
    }
    int stage = 0;
    __syncthreads();

    // the first fragments (double_buffer A A.register B B.register)
    {
        alignas(16) unsigned short A_raw[8];
        *reinterpret_cast<uint4 *>(&A_raw[0]) =
            *reinterpret_cast<const uint4 *>(&A_shared[0][0][thread_m]);
        #pragma unroll
        for (int e = 0; e < 8; ++e) A_frag[0][e] = gg_from_f16(A_raw[e]);
    }
    #pragma unroll
    for (int reg_n = 0; reg_n < TN; reg_n += 8) {
        alignas(16) unsigned short B_raw[8];
        *reinterpret_cast<uint4 *>(&B_raw[0]) =
            *reinterpret_cast<const uint4 *>(&B_shared[0][0][thread_n + reg_n * LN]);
        #pragma unroll
        for (int e = 0; e < 8; ++e) B_frag[0][reg_n + e] = gg_from_f16(B_raw[e]);
    }
    for (int tile_k = 0; tile_k < K; tile_k += BK) {
        const int next_k = tile_k + BK;
        const int fill = 1 - stage;

        // load the next tile early (double_buffer A A.register B B.register)
        {
            const int m = tile_m + A_m, k = next_k + A_k;
            if (m < M && k + 7 < K) {
                *reinterpret_cast<uint4 *>(&A_next[0]) =
                    *reinterpret_cast<const uint4 *>(&A[(long long)m * lda + k]);
            } else {
                #pragma unroll
                for (int e = 0; e < 8; ++e) {
                    A_next[e] = m < M && k + e < K ? A[(long long)m * lda + k + e] : 0;
                }
            }
        }
        if (next_k + BK <= K && tile_n + BN <= N) {
            #pragma unroll
            for (int piece = 0; piece < 2; ++piece) {
                const int k = next_k + B_k + piece * (THREADS / (BN / 8)), n = tile_n + B_n;
                *reinterpret_cast<uint4 *>(&B_next[piece][0]) =
                    *reinterpret_cast<const uint4 *>(&B[(long long)k * ldb + n]);
            }
        } else {
            #pragma unroll
            for (int piece = 0; piece < 2; ++piece) {
                const int k = next_k + B_k + piece * (THREADS / (BN / 8)), n = tile_n + B_n;
                if (k < K && n + 7 < N) {
                    *reinterpret_cast<uint4 *>(&B_next[piece][0]) =
                        *reinterpret_cast<const uint4 *>(&B[(long long)k * ldb + n]);
                } else {
                    #pragma unroll
                    for (int e = 0; e < 8; ++e) {
                        B_next[piece][e] = k < K && n + e < N ? B[(long long)k * ldb + n + e] : 0;
                    }
                }
            }
        }

        // multiply the tile (register_block m=8 n=16)
        #pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (k + 1 < BK) {
                {
                    alignas(16) unsigned short A_raw[8];
                    *reinterpret_cast<uint4 *>(&A_raw[0]) =
                        *reinterpret_cast<const uint4 *>(
                            &A_shared[stage][k + 1][thread_m ^ (((k + 1) / 8) * 16)]);
                    #pragma unroll
                    for (int e = 0; e < 8; ++e) A_frag[(k + 1) % 2][e] = gg_from_f16(A_raw[e]);
                }
                #pragma unroll
                for (int reg_n = 0; reg_n < TN; reg_n += 8) {
                    alignas(16) unsigned short B_raw[8];
                    *reinterpret_cast<uint4 *>(&B_raw[0]) =
                        *reinterpret_cast<const uint4 *>(
                            &B_shared[stage][k + 1][thread_n + reg_n * LN]);
                    #pragma unroll
                    for (int e = 0; e < 8; ++e) {
                        B_frag[(k + 1) % 2][reg_n + e] = gg_from_f16(B_raw[e]);
                    }
                }
            } else {
                // store it late, and read ahead into it (double_buffer A A.register B B.register)
                #pragma unroll
                for (int e = 0; e < 8; ++e) {
                    A_shared[fill][A_k + e][A_m ^ ((A_k / 8) * 16)] = A_next[e];
                }
                #pragma unroll
                for (int piece = 0; piece < 2; ++piece) {
                    *reinterpret_cast<uint4 *>(
                        &B_shared[fill][B_k + piece * (THREADS / (BN / 8))][B_n]) =
                        *reinterpret_cast<const uint4 *>(&B_next[piece][0]);
                }
                __syncthreads();
                {
                    alignas(16) unsigned short A_raw[8];
                    *reinterpret_cast<uint4 *>(&A_raw[0]) =
                        *reinterpret_cast<const uint4 *>(&A_shared[fill][0][thread_m]);
                    #pragma unroll
                    for (int e = 0; e < 8; ++e) A_frag[(k + 1) % 2][e] = gg_from_f16(A_raw[e]);
                }
                #pragma unroll
                for (int reg_n = 0; reg_n < TN; reg_n += 8) {
                    alignas(16) unsigned short B_raw[8];
                    *reinterpret_cast<uint4 *>(&B_raw[0]) =
                        *reinterpret_cast<const uint4 *>(&B_shared[fill][0][thread_n + reg_n * LN]);
                    #pragma unroll
                    for (int e = 0; e < 8; ++e) {
                        B_frag[(k + 1) % 2][reg_n + e] = gg_from_f16(B_raw[e]);
                    }
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
        stage = fill;
    }

    // the epilogue (vectorize A B C width=8)
    #pragma unroll
    for (int reg_m = 0; reg_m < TM; ++reg_m) {
        const int m = tile_m + thread_m + reg_m;
        if (m < M) {
            #pragma unroll
            for (int reg_n = 0; reg_n < TN; reg_n += 8) {
                const int n = tile_n + thread_n + reg_n * LN;
                alignas(16) unsigned short out[8];
                alignas(16) unsigned short old[8] = {};
                if (beta != 0.0f) {
                    if (n + 7 < N) {
                        *reinterpret_cast<uint4 *>(&old[0]) =
                            *reinterpret_cast<const uint4 *>(&C[(long long)m * ldc + n]);
                    } else {
                        #pragma unroll
                        for (int e = 0; e < 8; ++e) {
                            if (n + e < N) old[e] = C[(long long)m * ldc + n + e];
                        }
                    }
                }
                #pragma unroll
                for (int e = 0; e < 8; ++e) {
                    out[e] = gg_to_f16(fmaf(beta, gg_from_f16(old[e]),
                        alpha * acc[reg_m][reg_n + e]));
                }
                if (n + 7 < N) {
                    *reinterpret_cast<uint4 *>(&C[(long long)m * ldc + n]) =
                        *reinterpret_cast<const uint4 *>(&out[0]);
                } else {
                    #pragma unroll
                    for (int e = 0; e < 8; ++e) {
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
    float alpha, const unsigned short *A, int lda,
    const unsigned short *B, int ldb, float beta, unsigned short *C,
    int ldc, cudaStream_t stream)
{
    if (M < 0 || N < 0 || K < 0 || M > 2147483503 || N > 2147483375 || K > 2147483599 ||
        lda < K || ldb < N || ldc < N || lda % 8 != 0 || ldb % 8 != 0 || ldc % 8 != 0)
        return cudaErrorInvalidValue;
    if (reinterpret_cast<size_t>(A) % 16 != 0 || reinterpret_cast<size_t>(B) % 16 != 0 ||
        reinterpret_cast<size_t>(C) % 16 != 0)
        return cudaErrorMisalignedAddress;
    if (M == 0 || N == 0) return cudaSuccess;
    if (alpha == 0) K = 0;  // as in BLAS
    const long long blocks = ((M - 1) / 128 + 1LL) * ((N - 1) / 256 + 1LL);
    if (blocks > 2147483647) return cudaErrorInvalidConfiguration;
    gemm<<<static_cast<unsigned>(blocks), 256, 0, stream>>>(
        M, N, K, alpha, A, lda, B, ldb, beta, C, ldc);
    return cudaGetLastError();
}
#endif

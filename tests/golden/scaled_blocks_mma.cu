// gemm: C[m, n] = relu(acc + bias[n]), acc = sum over k of A[m, k] * (B[n, k] * scales[n/32, k/64])
// (A f16, B f16, C f16, accumulators f32)
//
// schedule (defaults left out):
//     gemm            C[m, n] = A[m, k] * (B[n, k] * scales[n/32, k/64])
//     dtype           A=f16 B=f16 C=f16
//     tile            m=64 n=64 k=32
//     cache_shared    A[m, k] B[n, k]
//     warp_tile       m=32 n=64
//     tensor_core     via=mma promote=16
//     fuse_epilogue   relu(acc + bias[n])
// call (extents, leading dimensions: int; scalars: float; tensors: device pointers to unsigned
// short (f16 bits) for A, B, C, bias, float for scales):
//     launch_gemm(M, N, K, A, lda, B, ldb, C, ldc, scales, ldscales, bias, stream)
// launch:
//     ceil(M / 64) * ceil(N / 64) blocks of 64 threads; none if C is empty
// requires (leading dimensions count elements):
//     lda >= K, ldb >= K, ldc >= N
//     ldscales * 64 >= K
//     M <= 2147483567, N <= 2147483567, K <= 2147483599
//     C overlaps none of A, B, scales, bias

namespace gemm_detail {
// cvt.f32.f16: f16 bits to float, exactly.
__device__ __forceinline__ float gg_from_f16(unsigned short bits)
{ float number; asm("cvt.f32.f16 %0, %1;" : "=f"(number) : "h"(bits)); return number; }
// cvt.rn.f16.f32: float to f16 bits, rounded to nearest even.
__device__ __forceinline__ unsigned short gg_to_f16(float number)
{ unsigned short bits; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(number)); return bits; }

// ldmatrix.x4: a warp loads four matrices of 8 x 8 elements of 16 bits, each to a register
// of every lane.  Lane 8 * i + r names row r of matrix i: 16 bytes at a multiple of 16.
__device__ __forceinline__ void gg_ldmatrix_x4(
    unsigned *fragment, const unsigned short *row)
{
    const unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
                 : "r"(from) : "memory");
}

// mma.m16n8k16: acc += a * b of warp fragments, f16; adjacent accumulators in each of two
// rows that are 8 apart.
__device__ __forceinline__ void gg_mma_m16n8k16_f16(
    float *upper, float *lower, const unsigned *a, const unsigned *b)
{ asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(upper[0]), "+f"(upper[1]), "+f"(lower[0]), "+f"(lower[1])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])); }

// ---- kernel ----
constexpr int BM = 64, BN = 64, BK = 32;  // threadblock tile of C, and its step along K
constexpr int WM = 32, WN = 64;  // warp tile
constexpr int TM = 4, TN = 16;  // micro-tile of a thread
constexpr int PN = 2;  // in vectors of this many adjacent elements
constexpr int LM = WM / TM, LN = WN / TN;  // threads along each side of a warp
constexpr int IM = 16, IN = 8, IK = 16;  // tile of one instruction
constexpr int FM = WM / IM, FN = WN / IN;  // fragments of a warp
constexpr int PROMOTE = 16;  // promotion interval, in terms
constexpr int THREADS = (BM / WM) * (BN / WN) * 32;
constexpr int A_STEP = THREADS / BK, B_STEP = THREADS / BK;  // rows between a thread's copies
constexpr int A_VECTORS = BM / A_STEP, B_VECTORS = BN / B_STEP;  // a thread's copies of a tile
static_assert(WM % TM == 0 && WN % TN == 0, "the micro-tiles fill the tile");
static_assert(LM * LN == 32, "a warp's threads fill its tile");
static_assert(BK % IK == 0, "the steps fill the tile");
static_assert(THREADS % BK == 0 && A_VECTORS * A_STEP == BM, "the threads copy whole tiles of A");
static_assert(THREADS % BK == 0 && B_VECTORS * B_STEP == BN, "the threads copy whole tiles of B");
static_assert(THREADS <= 1024, "a block has at most 1024 threads");

extern "C" __global__ void __launch_bounds__(THREADS, 2)
gemm(int M, int N, int K,
    const unsigned short *__restrict__ A, int lda, const unsigned short *__restrict__ B, int ldb,
    unsigned short *__restrict__ C, int ldc, const float *__restrict__ scales, int ldscales,
    const unsigned short *__restrict__ bias)
{
    // tiles in shared memory (cache_shared)
    __shared__ alignas(16) unsigned short A_shared[BM][BK];
    __shared__ alignas(16) unsigned short B_shared[BN][BK];
    static_assert(sizeof(A_shared) + sizeof(B_shared) <= 48 * 1024, "static shared memory: 48 KiB");

    // the block's tile of C (tile)
    const int blocks_n = (N - 1) / BN + 1;
    const int tile_m = (blockIdx.x / blocks_n) * BM;
    const int tile_n = (blockIdx.x % blocks_n) * BN;

    // the thread's position in it (tile; warp_tile; tensor_core)
    const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    const int thread_m = (warp / (BN / WN)) * WM + lane / LN;
    const int thread_n = (warp % (BN / WN)) * WN + (lane % LN) * PN;
    const int A_row_m = (warp / (BN / WN)) * WM + lane % 16;
    const int A_row_k = (lane / 16) * 8;
    const int B_row_n = (warp % (BN / WN)) * WN + lane % 8 + (lane / 16) * 8;
    const int B_row_k = (lane / 8 % 2) * 8;

    // first element of A and B that this thread copies
    const int A_m = tid / BK, A_k = tid % BK;
    const int B_n = tid / BK, B_k = tid % BK;

    // registers: operand fragments, accumulators
    unsigned A_frag[FM * 4];
    unsigned B_frag[FN * 2];
    float part[TM][TN] = {};
    float acc[TM][TN] = {};

    // main loop over tiles along K
    for (int tile_k = 0; tile_k < K; tile_k += BK) {
        // load this step's tiles (cache_shared)
        #pragma unroll
        for (int vector = 0; vector < A_VECTORS; ++vector) {
            const int m = tile_m + A_m + vector * A_STEP, k = tile_k + A_k;
            A_shared[A_m + vector * A_STEP][A_k] = m < M && k < K ? A[(long long)m * lda + k] : 0;
        }
        #pragma unroll
        for (int vector = 0; vector < B_VECTORS; ++vector) {
            const int n = tile_n + B_n + vector * B_STEP, k = tile_k + B_k;
            B_shared[B_n + vector * B_STEP][B_k] = n < N && k < K ? B[(long long)n * ldb + k] : 0;
        }
        __syncthreads();

        // multiply the tile (tensor_core)
        // the scales of this step
        float scales_frag[2];
        #pragma unroll
        for (int reg_n = 0; reg_n < 2; ++reg_n) {
            const int n = tile_n + thread_n + reg_n * 8 * LN;
            scales_frag[reg_n] =
                n < N ? scales[(long long)(n / 32) * ldscales + tile_k / 64] : 0.0f;
        }
        #pragma unroll
        for (int k = 0; k < BK; k += IK) {
            #pragma unroll
            for (int frag_m = 0; frag_m < FM; ++frag_m) {
                gg_ldmatrix_x4(&A_frag[frag_m * 4], &A_shared[A_row_m + frag_m * IM][A_row_k + k]);
            }
            #pragma unroll
            for (int frag_n = 0; frag_n < FN; frag_n += 2) {
                gg_ldmatrix_x4(&B_frag[frag_n * 2], &B_shared[B_row_n + frag_n * IN][B_row_k + k]);
            }
            #pragma unroll
            for (int frag_m = 0; frag_m < FM; ++frag_m) {
                #pragma unroll
                for (int frag_n = 0; frag_n < FN; ++frag_n) {
                    gg_mma_m16n8k16_f16(&part[frag_m * 2][frag_n * 2],
                        &part[frag_m * 2 + 1][frag_n * 2], &A_frag[frag_m * 4],
                        &B_frag[frag_n * 2]);
                }
            }
            if ((k + IK) % PROMOTE == 0) {
                // scale the partial accumulators, and promote them to f32
                #pragma unroll
                for (int reg_m = 0; reg_m < TM; ++reg_m) {
                    #pragma unroll
                    for (int reg_n = 0; reg_n < TN; ++reg_n) {
                        acc[reg_m][reg_n] =
                            fmaf(part[reg_m][reg_n], scales_frag[reg_n / 8], acc[reg_m][reg_n]);
                        part[reg_m][reg_n] = 0.0f;
                    }
                }
            }
        }
        __syncthreads();
    }

    // the epilogue (fuse_epilogue)
    float bias_frag[TN];
    #pragma unroll
    for (int reg_n = 0; reg_n < TN; ++reg_n) {
        const int n = tile_n + thread_n + (reg_n / PN) * (PN * LN) + reg_n % PN;
        bias_frag[reg_n] = n < N ? gg_from_f16(bias[n]) : 0.0f;
    }
    #pragma unroll
    for (int reg_m = 0; reg_m < TM; ++reg_m) {
        const int m = tile_m + thread_m + reg_m * LM;
        if (m < M) {
            #pragma unroll
            for (int reg_n = 0; reg_n < TN; ++reg_n) {
                const int n = tile_n + thread_n + (reg_n / PN) * (PN * LN) + reg_n % PN;
                if (n < N) {
                    const float value = acc[reg_m][reg_n] + bias_frag[reg_n];
                    C[(long long)m * ldc + n] = gg_to_f16(value < 0.0f ? 0.0f : value);
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
    const unsigned short *A, int lda, const unsigned short *B, int ldb, unsigned short *C,
    int ldc, const float *scales, int ldscales, const unsigned short *bias, cudaStream_t stream)
{
    using namespace gemm_detail;
    if (M < 0 || N < 0 || K < 0 || M > 2147483567 || N > 2147483567 || K > 2147483599 || lda < K ||
        ldb < K || ldc < N || (long long)ldscales * 64 < K)
        return cudaErrorInvalidValue;
    if (M == 0 || N == 0) return cudaSuccess;
    const long long blocks = ((M - 1) / BM + 1LL) * ((N - 1) / BN + 1LL);
    if (blocks > 2147483647) return cudaErrorInvalidConfiguration;
    gemm<<<static_cast<unsigned>(blocks), THREADS, 0, stream>>>(
        M, N, K, A, lda, B, ldb, C, ldc, scales, ldscales, bias);
    return cudaGetLastError();
}
#endif

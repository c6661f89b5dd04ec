// gemm: y[m, n] = alpha * acc + beta * y[m, n], acc = sum over k of A[m, k] * x[n, k] (f32)
//
// schedule (defaults left out):
//     gemm            y[m, n] = A[m, k] * x[n, k]
//     tile            m=8 n=1 k=512
//     vectorize       A.global x.global width=4
//     split_k         within=warp
// call (extents, leading dimensions: int; scalars: float; tensors: device pointers to float):
//     launch_gemm(M, N, K, alpha, A, lda, x, ldx, beta, y, ldy, stream)
// launch:
//     ceil(M / 8) * ceil(N / 1) blocks of 256 threads; none if C is empty
//     K = 0 if alpha == 0: as in BLAS, A and x are not read
// requires (leading dimensions count elements):
//     lda >= K, ldx >= K, ldy >= N
//     M <= 2147483623, N <= 2147483630, K <= 2147483119
//     lda % 4 == 0, ldx % 4 == 0
//     A, x aligned to 16 bytes
//     y overlaps none of A, x

namespace gemm_detail {
// Copies 4 contiguous elements in one access.
__device__ __forceinline__ void copy4(float *target, const float *source)
{ *reinterpret_cast<float4 *>(target) = *reinterpret_cast<const float4 *>(source); }
// shfl.sync.bfly: the value that lane `lane ^ lane_mask` passes; all 32 lanes must call it.
__device__ __forceinline__ float gg_shuffle_xor(float value, int lane_mask) {
    float result;
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;"
                 : "=f"(result) : "f"(value), "r"(lane_mask));
    return result;
}

// ---- kernel ----
constexpr int BM = 8, BN = 1, BK = 512;  // threadblock tile of C, and its step along K
constexpr int TM = 1, TN = 1;  // micro-tile of a warp
constexpr int LK = 32;  // lanes that share each sum
constexpr int TK = BK / LK;  // k elements of a lane in each step
constexpr int PK = 4;  // in vectors of this many adjacent elements
constexpr int LM = BM / TM, LN = BN / TN;  // warps along each side of the block
constexpr int VEC = 4;  // elements of a vector access
constexpr int THREADS = LM * LN * LK;
static_assert(TM == 1 && TN == 1, "the micro-tiles fill the tile");
static_assert(THREADS <= 1024, "a block has at most 1024 threads");

// loads a vector of A; zeros outside the matrix (split_k; vectorize)
__device__ __forceinline__ void load_A(float *target, const float *A, int lda, int M, int K, int m,
    int k)
{
    if (m < M && k + VEC - 1 < K) return copy4(target, &A[(long long)m * lda + k]);
    for (int e = 0; e < VEC; ++e)
        target[e] = m < M && k + e < K ? A[(long long)m * lda + k + e] : 0.0f;
}

// loads a vector of x; zeros outside the matrix (split_k; vectorize)
__device__ __forceinline__ void load_x(float *target, const float *x, int ldx, int K, int n, int k)
{
    if (k + VEC - 1 < K) return copy4(target, &x[(long long)n * ldx + k]);
    for (int e = 0; e < VEC; ++e)
        target[e] = k + e < K ? x[(long long)n * ldx + k + e] : 0.0f;
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
gemm(int M, int N, int K,
    float alpha, const float *__restrict__ A, int lda, const float *__restrict__ x, int ldx,
    float beta, float *__restrict__ y, int ldy)
{
    // the block's tile of C (tile)
    const int blocks_n = (N - 1) / BN + 1;
    const int tile_m = (blockIdx.x / blocks_n) * BM;
    const int tile_n = (blockIdx.x % blocks_n) * BN;

    // the warp's position in it (tile; split_k)
    const int tid = threadIdx.x, warp = tid / LK, lane = tid % LK;
    const int thread_m = warp / LN, thread_n = warp % LN, thread_k = lane * PK;

    // registers: operand fragments, accumulators
    alignas(16) float A_frag[TM][TK], x_frag[TN][TK];
    float acc[TM][TN] = {};

    // main loop over tiles along K
    for (int tile_k = 0; tile_k < K; tile_k += BK) {
        // load the lane's k elements of the step (split_k; vectorize)
        if (tile_m + BM <= M && tile_k + BK <= K) {
            #pragma unroll
            for (int reg_m = 0; reg_m < TM; ++reg_m) {
                const int m = tile_m + thread_m;
                #pragma unroll
                for (int reg_k = 0; reg_k < TK; reg_k += VEC) {
                    const int k = tile_k + thread_k + reg_k * LK;
                    copy4(&A_frag[reg_m][reg_k], &A[(long long)m * lda + k]);
                }
            }
            #pragma unroll
            for (int reg_n = 0; reg_n < TN; ++reg_n) {
                const int n = tile_n + thread_n;
                #pragma unroll
                for (int reg_k = 0; reg_k < TK; reg_k += VEC) {
                    const int k = tile_k + thread_k + reg_k * LK;
                    copy4(&x_frag[reg_n][reg_k], &x[(long long)n * ldx + k]);
                }
            }
        } else {
            #pragma unroll
            for (int reg_m = 0; reg_m < TM; ++reg_m) {
                const int m = tile_m + thread_m;
                #pragma unroll
                for (int reg_k = 0; reg_k < TK; reg_k += VEC) {
                    const int k = tile_k + thread_k + reg_k * LK;
                    load_A(&A_frag[reg_m][reg_k], A, lda, M, K, m, k);
                }
            }
            #pragma unroll
            for (int reg_n = 0; reg_n < TN; ++reg_n) {
                const int n = tile_n + thread_n;
                #pragma unroll
                for (int reg_k = 0; reg_k < TK; reg_k += VEC) {
                    const int k = tile_k + thread_k + reg_k * LK;
                    load_x(&x_frag[reg_n][reg_k], x, ldx, K, n, k);
                }
            }
        }

        // multiply them (split_k)
        #pragma unroll
        for (int reg_k = 0; reg_k < TK; ++reg_k) {
            #pragma unroll
            for (int reg_m = 0; reg_m < TM; ++reg_m) {
                #pragma unroll
                for (int reg_n = 0; reg_n < TN; ++reg_n) {
                    acc[reg_m][reg_n] =
                        fmaf(A_frag[reg_m][reg_k], x_frag[reg_n][reg_k], acc[reg_m][reg_n]);
                }
            }
        }
    }

    // sum over the lanes of the warp (split_k)
    #pragma unroll
    for (int reg_m = 0; reg_m < TM; ++reg_m) {
        #pragma unroll
        for (int reg_n = 0; reg_n < TN; ++reg_n) {
            acc[reg_m][reg_n] += gg_shuffle_xor(acc[reg_m][reg_n], 16);
            acc[reg_m][reg_n] += gg_shuffle_xor(acc[reg_m][reg_n], 8);
            acc[reg_m][reg_n] += gg_shuffle_xor(acc[reg_m][reg_n], 4);
            acc[reg_m][reg_n] += gg_shuffle_xor(acc[reg_m][reg_n], 2);
            acc[reg_m][reg_n] += gg_shuffle_xor(acc[reg_m][reg_n], 1);
        }
    }

    // the epilogue
    if (lane == 0) {
        #pragma unroll
        for (int reg_m = 0; reg_m < TM; ++reg_m) {
            const int m = tile_m + thread_m;
            if (m < M) {
                #pragma unroll
                for (int reg_n = 0; reg_n < TN; ++reg_n) {
                    const int n = tile_n + thread_n;
                    const float old = beta != 0.0f ? y[(long long)m * ldy + n] : 0.0f;
                    y[(long long)m * ldy + n] = fmaf(beta, old, alpha * acc[reg_m][reg_n]);
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
    float alpha, const float *A, int lda, const float *x, int ldx, float beta, float *y, int ldy,
    cudaStream_t stream)
{
    using namespace gemm_detail;
    if (M < 0 || N < 0 || K < 0 || M > 2147483623 || N > 2147483630 || K > 2147483119 || lda < K ||
        ldx < K || ldy < N || lda % 4 != 0 || ldx % 4 != 0)
        return cudaErrorInvalidValue;
    if (reinterpret_cast<size_t>(A) % 16 != 0 || reinterpret_cast<size_t>(x) % 16 != 0)
        return cudaErrorMisalignedAddress;
    if (M == 0 || N == 0) return cudaSuccess;
    if (alpha == 0) K = 0;  // as in BLAS
    const long long blocks = ((M - 1) / BM + 1LL) * ((N - 1) / BN + 1LL);
    if (blocks > 2147483647) return cudaErrorInvalidConfiguration;
    gemm<<<static_cast<unsigned>(blocks), THREADS, 0, stream>>>(
        M, N, K, alpha, A, lda, x, ldx, beta, y, ldy);
    return cudaGetLastError();
}
#endif

// gemm: C[m, n] = gelu_tanh(acc + bias[n]) + residual[m, n], acc = sum over k of A[m, k] * B[n, k]
// (A bf16, B bf16, C bf16, accumulators f32)
//
// schedule (defaults left out):
//     gemm            C[m, n] = A[m, k] * B[n, k]
//     dtype           A=bf16 B=bf16 C=bf16 bias=f32
//     tile            m=128 n=128 k=16
//     cache_shared    A[k, m] B[k, n]
//     register_block  m=8 n=8
//     vectorize       A B C width=8
//     swizzle         A B
//     double_buffer   A A.register B B.register
//     fuse_epilogue   gelu_tanh(acc + bias[n]) + residual[m, n]
// call (extents, leading dimensions: int; scalars: float; tensors: device pointers to unsigned
// short (bf16 bits) for A, B, C, residual, float for bias):
//     launch_gemm(M, N, K, A, lda, B, ldb, C, ldc, bias, residual, ldresidual, stream)
// launch:
//     ceil(M / 128) * ceil(N / 128) blocks of 16 x 16 threads; none if C is empty
// requires (leading dimensions count elements):
//     lda >= K, ldb >= K, ldc >= N, ldresidual >= N
//     M <= 2147483503, N <= 2147483503, K <= 2147483599
//     lda % 8 == 0, ldb % 8 == 0, ldc % 8 == 0
//     A, B, C aligned to 16 bytes
//     C overlaps none of A, B, bias, residual

namespace gemm_detail {
// Copies 8 contiguous elements in one access.
__device__ __forceinline__ void copy8(unsigned short *target, const unsigned short *source)
{ *reinterpret_cast<uint4 *>(target) = *reinterpret_cast<const uint4 *>(source); }
// mov.b32: bf16 bits to float: they are its upper half.
__device__ __forceinline__ float gg_from_bf16(unsigned short bits) {
    float number;
    asm("mov.b32 %0, {%1, %2};" : "=f"(number) : "h"(static_cast<unsigned short>(0)), "h"(bits));
    return number;
}
// cvt.rn.bf16.f32: float to bf16 bits, rounded to nearest even.
__device__ __forceinline__ unsigned short gg_to_bf16(float number)
{ unsigned short bits; asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(number)); return bits; }

// ---- kernel ----
constexpr int BM = 128, BN = 128, BK = 16;  // threadblock tile of C, and its step along K
constexpr int TM = 8, TN = 8;  // micro-tile of a thread
constexpr int LM = BM / TM, LN = BN / TN;  // threads along each side of the block
constexpr int VEC = 8;  // elements of a vector access
constexpr int THREADS = LM * LN;
static_assert(BM % TM == 0 && BN % TN == 0, "the micro-tiles fill the tile");
static_assert(THREADS * VEC == BM * BK && THREADS * VEC == BN * BK, "the threads copy whole tiles");
static_assert(THREADS <= 1024, "a block has at most 1024 threads");

// loads a vector of A or B; zeros outside the matrix (cache_shared; vectorize)
__device__ __forceinline__ void load8(unsigned short *target, const unsigned short *X, int ldx,
    int rows, int cols, int i, int j)
{
    if (i < rows && j + VEC - 1 < cols) return copy8(target, &X[(long long)i * ldx + j]);
    for (int e = 0; e < VEC; ++e)
        target[e] = i < rows && j + e < cols ? X[(long long)i * ldx + j + e] : 0;
}

// copies the elements before `stop` of a vector whose first index is `first` (vectorize;
// fuse_epilogue)
__device__ __forceinline__ void copy8(unsigned short *target, const unsigned short *source,
    int first, int stop)
{
    if (first + VEC - 1 < stop) return copy8(target, source);
    for (int e = 0; e < VEC; ++e) if (first + e < stop) target[e] = source[e];
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
gemm(int M, int N, int K,
    const unsigned short *__restrict__ A, int lda, const unsigned short *__restrict__ B, int ldb,
    unsigned short *__restrict__ C, int ldc, const float *__restrict__ bias,
    const unsigned short *__restrict__ residual, int ldresidual)
{
    // tiles in shared memory (cache_shared; swizzle; double_buffer)
    __shared__ alignas(16) unsigned short A_shared[2][BK][BM];
    __shared__ alignas(16) unsigned short B_shared[2][BK][BN];
    static_assert(sizeof(A_shared) + sizeof(B_shared) <= 48 * 1024, "static shared memory: 48 KiB");

    // the block's tile of C (tile)
    const int blocks_n = (N - 1) / BN + 1;
    const int tile_m = (blockIdx.x / blocks_n) * BM;
    const int tile_n = (blockIdx.x % blocks_n) * BN;

    // the thread's position in it (tile; register_block)
    const int tid = threadIdx.y * LN + threadIdx.x;
    const int thread_m = threadIdx.y * TM, thread_n = threadIdx.x * TN;

    // first vector of A and B that this thread copies
    const int A_m = tid / (BK / VEC), A_k = (tid % (BK / VEC)) * VEC;
    const int B_n = tid / (BK / VEC), B_k = (tid % (BK / VEC)) * VEC;

    // registers: operand fragments, accumulators, staging
    alignas(16) float A_frag[2][TM], B_frag[2][TN];
    float acc[TM][TN] = {};
    alignas(16) unsigned short A_next[VEC], B_next[VEC];

    // load the first tile (cache_shared)
    load8(A_next, A, lda, M, K, tile_m + A_m, A_k);
    for (int e = 0; e < VEC; ++e)
        A_shared[0][A_k + e][A_m ^ ((A_k / 8) * 16)] = A_next[e];
    load8(B_next, B, ldb, N, K, tile_n + B_n, B_k);
    for (int e = 0; e < VEC; ++e)
        B_shared[0][B_k + e][B_n ^ ((B_k / 8) * 16)] = B_next[e];
    int stage = 0;
    __syncthreads();

    // load the first fragments (double_buffer)
    {
        alignas(16) unsigned short A_raw[VEC];
        copy8(A_raw, &A_shared[0][0][thread_m]);
        for (int e = 0; e < VEC; ++e) A_frag[0][e] = gg_from_bf16(A_raw[e]);
    }
    {
        alignas(16) unsigned short B_raw[VEC];
        copy8(B_raw, &B_shared[0][0][thread_n]);
        for (int e = 0; e < VEC; ++e) B_frag[0][e] = gg_from_bf16(B_raw[e]);
    }

    // main loop over tiles along K
    for (int tile_k = 0; tile_k < K; tile_k += BK) {
        const int next_k = tile_k + BK, next_stage = 1 - stage;

        // load the next tile early (double_buffer)
        load8(A_next, A, lda, M, K, tile_m + A_m, next_k + A_k);
        load8(B_next, B, ldb, N, K, tile_n + B_n, next_k + B_k);

        // multiply the tile (register_block)
        #pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (k + 1 < BK) {
                {
                    alignas(16) unsigned short A_raw[VEC];
                    copy8(A_raw, &A_shared[stage][k + 1][thread_m ^ (((k + 1) / 8) * 16)]);
                    for (int e = 0; e < VEC; ++e) A_frag[(k + 1) % 2][e] = gg_from_bf16(A_raw[e]);
                }
                {
                    alignas(16) unsigned short B_raw[VEC];
                    copy8(B_raw, &B_shared[stage][k + 1][thread_n ^ (((k + 1) / 8) * 16)]);
                    for (int e = 0; e < VEC; ++e) B_frag[(k + 1) % 2][e] = gg_from_bf16(B_raw[e]);
                }
            } else {
                // store the prefetched tile to shared memory, then read ahead into it
                // (double_buffer)
                for (int e = 0; e < VEC; ++e)
                    A_shared[next_stage][A_k + e][A_m ^ ((A_k / 8) * 16)] = A_next[e];
                for (int e = 0; e < VEC; ++e)
                    B_shared[next_stage][B_k + e][B_n ^ ((B_k / 8) * 16)] = B_next[e];
                __syncthreads();
                {
                    alignas(16) unsigned short A_raw[VEC];
                    copy8(A_raw, &A_shared[next_stage][0][thread_m]);
                    for (int e = 0; e < VEC; ++e) A_frag[(k + 1) % 2][e] = gg_from_bf16(A_raw[e]);
                }
                {
                    alignas(16) unsigned short B_raw[VEC];
                    copy8(B_raw, &B_shared[next_stage][0][thread_n]);
                    for (int e = 0; e < VEC; ++e) B_frag[(k + 1) % 2][e] = gg_from_bf16(B_raw[e]);
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
        stage = next_stage;
    }

    // the epilogue (vectorize; fuse_epilogue)
    float bias_frag[TN];
    #pragma unroll
    for (int reg_n = 0; reg_n < TN; ++reg_n) {
        const int n = tile_n + thread_n + reg_n;
        bias_frag[reg_n] = n < N ? bias[n] : 0.0f;
    }
    #pragma unroll
    for (int reg_m = 0; reg_m < TM; ++reg_m) {
        const int m = tile_m + thread_m + reg_m;
        if (m < M) {
            #pragma unroll
            for (int reg_n = 0; reg_n < TN; reg_n += VEC) {
                const int n = tile_n + thread_n + reg_n;
                alignas(16) unsigned short out[VEC];
                for (int e = 0; e < VEC; ++e) {
                    const float value = acc[reg_m][reg_n + e] + bias_frag[reg_n + e];
                    out[e] = gg_to_bf16(fmaf(0.5f * value,
                        1.0f + tanhf(0.7978846f * fmaf(0.044715f * value * value, value, value)),
                        n + e < N ? gg_from_bf16(residual[(long long)m * ldresidual + n + e]) :
                        0.0f));
                }
                copy8(&C[(long long)m * ldc + n], out, n, N);
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
    int ldc, const float *bias, const unsigned short *residual, int ldresidual, cudaStream_t stream)
{
    using namespace gemm_detail;
    if (M < 0 || N < 0 || K < 0 || M > 2147483503 || N > 2147483503 || K > 2147483599 || lda < K ||
        ldb < K || ldc < N || ldresidual < N || lda % 8 != 0 || ldb % 8 != 0 || ldc % 8 != 0)
        return cudaErrorInvalidValue;
    if (reinterpret_cast<size_t>(A) % 16 != 0 || reinterpret_cast<size_t>(B) % 16 != 0 ||
        reinterpret_cast<size_t>(C) % 16 != 0)
        return cudaErrorMisalignedAddress;
    if (M == 0 || N == 0) return cudaSuccess;
    const long long blocks = ((M - 1) / BM + 1LL) * ((N - 1) / BN + 1LL);
    if (blocks > 2147483647) return cudaErrorInvalidConfiguration;
    gemm<<<static_cast<unsigned>(blocks), dim3(LN, LM), 0, stream>>>(
        M, N, K, A, lda, B, ldb, C, ldc, bias, residual, ldresidual);
    return cudaGetLastError();
}
#endif

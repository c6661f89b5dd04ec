// gemm: S[b, h, i, j] = where(j > i, -1e+30, acc * scale + mask[b, j] - slope[h] * (i - j)), acc =
// sum over d of Q[b, h, i, d] * K[b, h, j, d] (f32)
//
// schedule (defaults left out):
//     gemm            S[b, h, i, j] = Q[b, h, i, d] * K[b, h, j, d]
//     tile            i=32 j=64 d=8
//     cache_shared    Q[d, i] K[d, j]
//     register_block  i=4 j=8
//     vectorize       Q.shared K.shared S width=4
//     fuse_epilogue   where(j > i, -1e+30, acc * scale + mask[b, j] - slope[h] * (i - j))
// call (extents, leading dimensions: int; strides: long long; scalars: float; tensors: device
// pointers to float):
//     launch_gemm(I, J, D, size_b, size_h, Q, ldq, stride_Q_b, stride_Q_h, K, ldk, stride_K_b,
//         stride_K_h, S, lds, stride_S_b, stride_S_h, mask, stride_mask_b, slope, scale, stream)
// launch:
//     ceil(I / 32) * ceil(J / 64) * size_b * size_h blocks of 8 x 8 threads; none if C is empty
// requires (leading dimensions and strides count elements):
//     ldq >= D, ldk >= D, lds >= J
//     I <= 2147483599, J <= 2147483567, D <= 2147483623
//     lds % 4 == 0, stride_S_b % 4 == 0, stride_S_h % 4 == 0
//     S aligned to 16 bytes
//     S overlaps none of Q, K, mask, slope
//     no two elements of S are one

namespace gemm_detail {
// Copies 4 contiguous elements in one access.
__device__ __forceinline__ void copy4(float *target, const float *source)
{ *reinterpret_cast<float4 *>(target) = *reinterpret_cast<const float4 *>(source); }

// ---- kernel ----
constexpr int BI = 32, BJ = 64, BD = 8;  // threadblock tile of C, and its step along D
constexpr int TI = 4, TJ = 8;  // micro-tile of a thread
constexpr int PJ = 4;  // in vectors of this many adjacent elements
constexpr int LI = BI / TI, LJ = BJ / TJ;  // threads along each side of the block
constexpr int VEC = 4;  // elements of a vector access
constexpr int THREADS = LI * LJ;
constexpr int Q_STEP = THREADS / BD, K_STEP = THREADS / BD;  // rows between a thread's copies
constexpr int Q_VECTORS = BI / Q_STEP, K_VECTORS = BJ / K_STEP;  // a thread's copies of a tile
static_assert(BI % TI == 0 && BJ % TJ == 0, "the micro-tiles fill the tile");
static_assert(THREADS % BD == 0 && Q_VECTORS * Q_STEP == BI, "the threads copy whole tiles of Q");
static_assert(THREADS % BD == 0 && K_VECTORS * K_STEP == BJ, "the threads copy whole tiles of K");
static_assert(THREADS <= 1024, "a block has at most 1024 threads");

// copies the elements before `stop` of a vector whose first index is `first` (vectorize;
// fuse_epilogue)
__device__ __forceinline__ void copy4(float *target, const float *source, int first, int stop) {
    if (first + VEC - 1 < stop) return copy4(target, source);
    for (int e = 0; e < VEC; ++e) if (first + e < stop) target[e] = source[e];
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
gemm(int I, int J, int D, int size_b, int size_h,
    const float *__restrict__ Q, int ldq, long long stride_Q_b, long long stride_Q_h,
    const float *__restrict__ K, int ldk, long long stride_K_b, long long stride_K_h,
    float *__restrict__ S, int lds, long long stride_S_b, long long stride_S_h,
    const float *__restrict__ mask, long long stride_mask_b, const float *__restrict__ slope,
    float scale)
{
    // tiles in shared memory (cache_shared)
    __shared__ alignas(16) float Q_shared[BD][BI];
    __shared__ alignas(16) float K_shared[BD][BJ];
    static_assert(sizeof(Q_shared) + sizeof(K_shared) <= 48 * 1024, "static shared memory: 48 KiB");

    // the block's b and h, and its matrices
    const int blocks_i = (I - 1) / BI + 1, blocks_j = (J - 1) / BJ + 1;
    const int matrix_tiles = blocks_i * blocks_j;
    const int b = blockIdx.x / matrix_tiles / size_h;
    const int h = blockIdx.x / matrix_tiles % size_h;
    Q += stride_Q_b * b + stride_Q_h * h;
    K += stride_K_b * b + stride_K_h * h;
    S += stride_S_b * b + stride_S_h * h;
    mask += stride_mask_b * b;
    slope += h;

    // the block's tile of C (tile)
    const int tile = blockIdx.x % matrix_tiles;
    const int tile_i = (tile / blocks_j) * BI, tile_j = (tile % blocks_j) * BJ;

    // the thread's position in it (tile; register_block)
    const int tid = threadIdx.y * LJ + threadIdx.x;
    const int thread_i = threadIdx.y * TI, thread_j = threadIdx.x * PJ;

    // first element of Q and K that this thread copies
    const int Q_i = tid / BD, Q_d = tid % BD;
    const int K_j = tid / BD, K_d = tid % BD;

    // registers: operand fragments, accumulators
    alignas(16) float Q_frag[TI], K_frag[TJ];
    float acc[TI][TJ] = {};

    // main loop over tiles along D
    for (int tile_d = 0; tile_d < D; tile_d += BD) {
        // load this step's tiles (cache_shared)
        #pragma unroll
        for (int vector = 0; vector < Q_VECTORS; ++vector) {
            const int i = tile_i + Q_i + vector * Q_STEP, d = tile_d + Q_d;
            Q_shared[Q_d][Q_i + vector * Q_STEP] =
                i < I && d < D ? Q[(long long)i * ldq + d] : 0.0f;
        }
        #pragma unroll
        for (int vector = 0; vector < K_VECTORS; ++vector) {
            const int j = tile_j + K_j + vector * K_STEP, d = tile_d + K_d;
            K_shared[K_d][K_j + vector * K_STEP] =
                j < J && d < D ? K[(long long)j * ldk + d] : 0.0f;
        }
        __syncthreads();

        // multiply the tile (register_block; vectorize)
        #pragma unroll
        for (int d = 0; d < BD; ++d) {
            copy4(Q_frag, &Q_shared[d][thread_i]);
            #pragma unroll
            for (int reg_j = 0; reg_j < TJ; reg_j += VEC)
                copy4(&K_frag[reg_j], &K_shared[d][thread_j + reg_j * LJ]);
            #pragma unroll
            for (int reg_i = 0; reg_i < TI; ++reg_i) {
                #pragma unroll
                for (int reg_j = 0; reg_j < TJ; ++reg_j)
                    acc[reg_i][reg_j] = fmaf(Q_frag[reg_i], K_frag[reg_j], acc[reg_i][reg_j]);
            }
        }
        __syncthreads();
    }

    // the epilogue (vectorize; fuse_epilogue)
    float mask_frag[TJ];
    #pragma unroll
    for (int reg_j = 0; reg_j < TJ; ++reg_j) {
        const int j = tile_j + thread_j + (reg_j / PJ) * (PJ * LJ) + reg_j % PJ;
        mask_frag[reg_j] = j < J ? mask[j] : 0.0f;
    }
    #pragma unroll
    for (int reg_i = 0; reg_i < TI; ++reg_i) {
        const int i = tile_i + thread_i + reg_i;
        if (i < I) {
            #pragma unroll
            for (int reg_j = 0; reg_j < TJ; reg_j += VEC) {
                const int j = tile_j + thread_j + reg_j * LJ;
                alignas(16) float out[VEC];
                for (int e = 0; e < VEC; ++e) {
                    out[e] = static_cast<float>(j + e) > static_cast<float>(i) ? -1e30f :
                        fmaf(-slope[0], static_cast<float>(i) - static_cast<float>(j + e),
                        fmaf(acc[reg_i][reg_j + e], scale, mask_frag[reg_j + e]));
                }
                copy4(&S[(long long)i * lds + j], out, j, J);
            }
        }
    }
}

// ---- end of kernel ----
}  // namespace gemm_detail

#ifndef __CUDACC_RTC__
// Checks the requirements, then launches gemm on the stream.
cudaError_t launch_gemm(int I, int J, int D, int size_b, int size_h,
    const float *Q, int ldq, long long stride_Q_b, long long stride_Q_h, const float *K, int ldk,
    long long stride_K_b, long long stride_K_h, float *S, int lds, long long stride_S_b,
    long long stride_S_h, const float *mask, long long stride_mask_b, const float *slope,
    float scale, cudaStream_t stream)
{
    using namespace gemm_detail;
    if (I < 0 || J < 0 || D < 0 || size_b < 0 || size_h < 0 || I > 2147483599 || J > 2147483567 ||
        D > 2147483623 || ldq < D || ldk < D || lds < J || lds % 4 != 0 || stride_S_b % 4 != 0 ||
        stride_S_h % 4 != 0)
        return cudaErrorInvalidValue;
    if (reinterpret_cast<size_t>(S) % 16 != 0)
        return cudaErrorMisalignedAddress;
    if (I == 0 || J == 0 || size_b == 0 || size_h == 0) return cudaSuccess;
    const long long tiles = ((I - 1) / BI + 1LL) * ((J - 1) / BJ + 1LL);
    if (tiles > 2147483647 / size_b / size_h) return cudaErrorInvalidConfiguration;
    const long long blocks = tiles * size_b * size_h;
    gemm<<<static_cast<unsigned>(blocks), dim3(LJ, LI), 0, stream>>>(
        I, J, D, size_b, size_h, Q, ldq, stride_Q_b, stride_Q_h, K, ldk, stride_K_b, stride_K_h, S,
            lds, stride_S_b, stride_S_h, mask, stride_mask_b, slope, scale);
    return cudaGetLastError();
}
#endif

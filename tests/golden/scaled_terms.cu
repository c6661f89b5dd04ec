// gemm: C[m, n] = alpha * acc + beta * C[m, n], acc = sum over k of A[m, k] * B[k, n] (f32)
//
// schedule (defaults left out):
//     gemm            C[m, n] = A[m, k] * B[k, n]
//     target          sm_90a
//     tile            m=64 n=64 k=32
//     cache_shared    A[m, k] B[k, n]
//     decompose       into=f16
//     tensor_core     via=wgmma promote=64
//     swizzle         A B
//     double_buffer   A B
//     async_copy      A B via=tma
// call (extents, leading dimensions: int; scalars: float; tensors: device pointers to float):
//     launch_gemm(M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, A_parts, A_scales, B_parts,
//         B_scales, stream)
// launch:
//     ceil(M / 64) * ceil(N / 64) blocks of 128 threads; none if C is empty
//     K = 0 if alpha == 0: as in BLAS, A and B are not read
//     f32 from 3 f16 products (f16x3), promoted every 64 terms:
//     the error is at most (9 * 64 + K / 64 + 9) * 2^-24 of the
//     sum of |A * B|, K * 2^-38 of the largest |A| of its m
//     times the largest |B| of its n, and K * 2^-126
// tensor maps (cuTensorMapEncodeTiled; the innermost dimension first, strides in bytes):
//     A_parts: FLOAT16, K x M x 2, strides 2 * A_pitch, 2 * A_plane, box 32 x 64 x 1, swizzle 64B
//     B_parts: FLOAT16, N x K x 2, strides 2 * B_pitch, 2 * B_plane, box 64 x 32 x 1, swizzle 128B
//     not interleaved, L2 promotion 128B, element strides 1, zeros outside
// requires (leading dimensions count elements):
//     lda >= K, ldb >= N, ldc >= N
//     M <= 2147483567, N <= 2147483567, K <= 2147483567
//     C overlaps none of A, B
//     A_parts: 2 * M * ceil(K / 8) * 16 bytes, aligned to 16 bytes
//     A_scales: 4 * M bytes
//     B_parts: 2 * K * ceil(N / 8) * 16 bytes, aligned to 16 bytes
//     B_scales: 4 * N bytes
//     concurrent launches need separate A_parts, A_scales, B_parts and B_scales

namespace gemm_detail {
// A CUtensorMap, the descriptor of a tensor for TMA; the launcher encodes it.
struct alignas(128) gg_tensor_map { unsigned long long words[16]; };
// cvta.to.shared: the address by which PTX instructions take shared memory.
__device__ __forceinline__ unsigned gg_shared(const void *pointer)
{ return static_cast<unsigned>(__cvta_generic_to_shared(pointer)); }
// shfl.sync.bfly: the value that lane `lane ^ lane_mask` passes; all 32 lanes must call it.
__device__ __forceinline__ float gg_shuffle_xor(float value, int lane_mask) {
    float result;
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;"
                 : "=f"(result) : "f"(value), "r"(lane_mask));
    return result;
}
// shfl.sync.idx: a warp-uniform copy of the value.
__device__ __forceinline__ int gg_uniform(int value) {
    int result;
    asm volatile("shfl.sync.idx.b32 %0, %1, 0, 0x1f, 0xffffffff;" : "=r"(result) : "r"(value));
    return result;
}
// testp.finite: whether a number is finite.
__device__ __forceinline__ bool gg_is_finite(float number) {
    int finite;
    asm("{\n.reg .pred found;\n"
        "testp.finite.f32 found, %1;\n"
        "selp.b32 %0, 1, 0, found;\n}"
        : "=r"(finite) : "f"(number));
    return finite != 0;
}
// The power of two with which the largest magnitude of a row is in [2^14, 2^15), in f16's range;
// 2^126 if it is below 2^-112, 2^-114 if it is infinite.
__device__ __forceinline__ float gg_row_scale(float largest) {
    const int exponent = __float_as_int(largest) >> 23;  // 127 for 1.0f
    return __int_as_float((268 - (exponent > 15 ? exponent : 15)) << 23);
}
// cvt.f32.f16: f16 bits to float, exactly.
__device__ __forceinline__ float gg_from_f16(unsigned short bits)
{ float number; asm("cvt.f32.f16 %0, %1;" : "=f"(number) : "h"(bits)); return number; }
// cvt.rn.f16.f32: float to f16 bits, rounded to nearest even.
__device__ __forceinline__ unsigned short gg_to_f16(float number)
{ unsigned short bits; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(number)); return bits; }

// mbarrier.init: a phase completes after `arrivals` arrivals and all expected bytes.
__device__ __forceinline__ void gg_init_barrier(unsigned long long &barrier, int arrivals)
{ asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
               :: "r"(gg_shared(&barrier)), "r"(arrivals) : "memory"); }
// fence.mbarrier_init: makes the initialized barriers visible to TMA and to the cluster.
__device__ __forceinline__ void gg_fence_barrier_init()
{ asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
// mbarrier.arrive.expect_tx: one arrival; the phase also waits for `bytes` bytes.
__device__ __forceinline__ void gg_expect_bytes(unsigned long long &barrier, int bytes)
{ asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
               :: "r"(gg_shared(&barrier)), "r"(bytes) : "memory"); }
// mbarrier.try_wait.parity: whether the phase with this parity has completed; may wait for it.
__device__ __forceinline__ bool gg_try_wait(unsigned long long &barrier, int parity) {
    int ended;
    asm volatile("{\n.reg .pred done;\nmbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
                 "selp.b32 %0, 1, 0, done;\n}"
                 : "=r"(ended) : "r"(gg_shared(&barrier)), "r"(parity) : "memory");
    return ended != 0;
}

// cp.async.bulk.tensor: TMA loads a box of a tensor, from these coordinates on, into shared
// memory; elements outside the tensor are zeros.  The barrier counts the bytes.
__device__ __forceinline__ void gg_load_box_3d(void *target, const gg_tensor_map &map,
    unsigned long long &barrier, int i0, int i1, int i2)
{ asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
               " [%0], [%1, {%3, %4, %5}], [%2];"
               :: "r"(gg_shared(target)), "l"(&map), "r"(gg_shared(&barrier)),
                  "r"(i0), "r"(i1), "r"(i2) : "memory"); }

// The matrix descriptor of a K-major wgmma operand with the 64-byte swizzle of TMA; groups of 8
// rows are `stride` bytes apart.  A step along k adds its bytes / 16.
__device__ __forceinline__ unsigned long long gg_matrix_64B(const void *first, int stride = 512)
{ return (gg_shared(first) & 0x3ffff) >> 4 | 1ULL << 16 |
         static_cast<unsigned long long>(stride >> 4) << 32 | 2ULL << 62; }
// The matrix descriptor of an MN-major wgmma operand with the 128-byte swizzle of TMA; swizzle
// atom columns are `column_bytes` apart.  A step along k adds its rows' bytes / 16.
__device__ __forceinline__ unsigned long long gg_matrix_128B_mn_major(
    const void *first, int column_bytes)
{ return (gg_shared(first) & 0x3ffff) >> 4 |
         static_cast<unsigned long long>(column_bytes >> 4) << 16 |
         1024ULL / 16 << 32 | 1ULL << 62; }
// wgmma.fence: orders accesses to the accumulator registers before the next wgmma.
__device__ __forceinline__ void gg_wgmma_fence()
{ asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
// wgmma.commit_group: makes this warpgroup's uncommitted wgmma operations one group.
__device__ __forceinline__ void gg_wgmma_commit()
{ asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// wgmma.wait_group 0: waits for all groups; the operands keep reads of `acc` after it.
template <int rows, int columns>
__device__ __forceinline__ void gg_wgmma_end(float (&acc)[rows][columns]) {
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
    for (int i = 0; i < rows * columns; ++i)
        asm volatile("" : "+f"(acc[i / columns][i % columns]) :: "memory");
}

// wgmma.mma_async: c, d = a * b + (accumulate ? c, d : 0) for a warpgroup's 64 x 64 tile; operands
// of f16 in shared memory, a K-major, b N-major.  A thread has two adjacent accumulators in every
// 8 columns, in row `c` and, 8 rows below, in row `d`.
__device__ __forceinline__ void gg_wgmma_m64n64k16_f16_mn_major_b(
    float *c, float *d, unsigned long long a, unsigned long long b, int accumulate)
{
    asm volatile("{\n.reg .pred more;\nsetp.ne.b32 more, %34, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {"
        "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,"
        "%24,%25,%26,%27,%28,%29,%30,%31}, "
        "%32, %33, more, 1, 1, 0, 1;\n}" :
    "+f"(c[0]),"+f"(c[1]),"+f"(d[0]),"+f"(d[1]),"+f"(c[2]),"+f"(c[3]),"+f"(d[2]),"+f"(d[3]),
    "+f"(c[4]),"+f"(c[5]),"+f"(d[4]),"+f"(d[5]),"+f"(c[6]),"+f"(c[7]),"+f"(d[6]),"+f"(d[7]),
    "+f"(c[8]),"+f"(c[9]),"+f"(d[8]),"+f"(d[9]),"+f"(c[10]),"+f"(c[11]),"+f"(d[10]),"+f"(d[11]),
    "+f"(c[12]),"+f"(c[13]),"+f"(d[12]),"+f"(d[13]),"+f"(c[14]),"+f"(c[15]),"+f"(d[14]),"+f"(d[15])
        : "l"(a), "l"(b), "r"(accumulate));
}

// ---- kernel ----
constexpr int BM = 64, BN = 64, BK = 32;  // threadblock tile of C, and its step along K
constexpr int WM = 16, WN = 64;  // warp tile
constexpr int TM = 2, TN = 16;  // micro-tile of a thread
constexpr int PN = 2;  // in vectors of this many adjacent elements
constexpr int LM = WM / TM, LN = WN / TN;  // threads along each side of a warp
constexpr int IK = 16;  // step of one instruction
constexpr int SPLIT = 2;  // parts of an element
constexpr int PROMOTE = 64;  // promotion interval, in terms
constexpr int WARPGROUP = 128;  // threads of a warpgroup
constexpr int THREADS = (BM / WM) * (BN / WN) * 32;
// bytes of the tiles in a stage
constexpr int STAGE_BYTES = SPLIT * (BM * BK * 2) + SPLIT * (BK * BN * 2);
static_assert(WM % TM == 0 && WN % TN == 0, "the micro-tiles fill the tile");
static_assert(LM * LN == 32, "a warp's threads fill its tile");
static_assert(BK % IK == 0, "the steps fill the tile");
static_assert(THREADS <= 1024, "a block has at most 1024 threads");

extern "C" __global__ void __launch_bounds__(THREADS, 2)
gemm(int M, int N, int K,
    float alpha, const float *__restrict__ A, int lda, const float *__restrict__ B, int ldb,
    float beta, float *__restrict__ C, int ldc, const __grid_constant__ gg_tensor_map A_parts,
    float *A_scales, const __grid_constant__ gg_tensor_map B_parts, float *B_scales)
{
    // tiles in shared memory (cache_shared; swizzle; double_buffer)
    __shared__ alignas(512) unsigned short A_shared[2][SPLIT][BM][BK];
    __shared__ alignas(1024) unsigned short B_shared[2][SPLIT][BK][BN];
    static_assert(sizeof(A_shared) + sizeof(B_shared) <= 48 * 1024, "static shared memory: 48 KiB");

    // the block's tile of C (tile)
    const int blocks_n = (N - 1) / BN + 1;
    const int tile_m = (blockIdx.x / blocks_n) * BM;
    const int tile_n = (blockIdx.x % blocks_n) * BN;

    // the thread's position in it (tile; tensor_core)
    const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    const int thread_m = (warp % (BM / WM)) * WM + lane / LN;
    const int thread_n = (warp / (BM / WM)) * WN + (lane % LN) * PN;
    const int first_warp = gg_uniform(tid / WARPGROUP) * (WARPGROUP / 32);
    const int warpgroup_m = (first_warp % (BM / WM)) * WM;
    const int warpgroup_n = (first_warp / (BM / WM)) * WN;

    // registers: accumulators
    float part[TM][TN];
    float acc[TM][TN] = {};

    // one mbarrier per stage: a phase completes when a tile has arrived (async_copy)
    __shared__ alignas(8) unsigned long long full[2];
    if (tid == 0) {
        for (int stage = 0; stage < 2; ++stage) gg_init_barrier(full[stage], 1);
        gg_fence_barrier_init();
    }
    __syncthreads();

    // copy the first tile (async_copy)
    if (tid == 0 && 0 < K) {
        gg_expect_bytes(full[0], STAGE_BYTES);
        #pragma unroll
        for (int plane = 0; plane < SPLIT; ++plane)
            gg_load_box_3d(A_shared[0][plane], A_parts, full[0], 0, tile_m, plane);
        #pragma unroll
        for (int plane = 0; plane < SPLIT; ++plane)
            gg_load_box_3d(B_shared[0][plane], B_parts, full[0], tile_n, 0, plane);
    }
    int stage = 0, phase = 0;

    // main loop over tiles along K
    for (int tile_k = 0; tile_k < K; tile_k += BK) {
        while (!gg_try_wait(full[stage], phase)) {}

        // multiply the tile: A = A[0] + A[1], B = B[0] + B[1]; the smallest products first
        // (decompose; tensor_core)
        const auto A_matrix = gg_matrix_64B(A_shared[stage][0][warpgroup_m], 512);
        const auto B_matrix =
            gg_matrix_128B_mn_major(&B_shared[stage][0][0][warpgroup_n], BK * 128);
        gg_wgmma_fence();
        #pragma unroll
        for (int k = 0; k < BK; k += IK) {
            // A[1] * B[0]
            gg_wgmma_m64n64k16_f16_mn_major_b(part[0], part[1],
                A_matrix + BM * BK * 2 / 16 + k * 2 / 16, B_matrix + k * 128 / 16,
                k > 0 || tile_k % PROMOTE > 0);
        }
        #pragma unroll
        for (int k = 0; k < BK; k += IK) {
            // A[0] * B[1]
            gg_wgmma_m64n64k16_f16_mn_major_b(part[0], part[1], A_matrix + k * 2 / 16,
                B_matrix + BK * BN * 2 / 16 + k * 128 / 16, 1);
        }
        #pragma unroll
        for (int k = 0; k < BK; k += IK) {
            // A[0] * B[0]
            gg_wgmma_m64n64k16_f16_mn_major_b(part[0], part[1], A_matrix + k * 2 / 16,
                B_matrix + k * 128 / 16, 1);
        }
        gg_wgmma_commit();
        gg_wgmma_end(part);

        // release the stage of this step
        __syncthreads();
        const int next_k = tile_k + BK, next_stage = 1 - stage;

        // copy a tile ahead (async_copy)
        if (tid == 0 && next_k < K) {
            gg_expect_bytes(full[next_stage], STAGE_BYTES);
            #pragma unroll
            for (int plane = 0; plane < SPLIT; ++plane) {
                gg_load_box_3d(A_shared[next_stage][plane], A_parts, full[next_stage], next_k,
                    tile_m, plane);
            }
            #pragma unroll
            for (int plane = 0; plane < SPLIT; ++plane) {
                gg_load_box_3d(B_shared[next_stage][plane], B_parts, full[next_stage], tile_n,
                    next_k, plane);
            }
        }

        // promote the partial accumulators to f32 (tensor_core)
        if ((tile_k + BK) % PROMOTE == 0 || tile_k + BK >= K) {
            #pragma unroll
            for (int reg_m = 0; reg_m < TM; ++reg_m) {
                #pragma unroll
                for (int reg_n = 0; reg_n < TN; ++reg_n) acc[reg_m][reg_n] += part[reg_m][reg_n];
            }
        }
        if (++stage == 2) { stage = 0; phase ^= 1; }
    }

    // undo the scales of the rows of A and the columns of B (decompose)
    if (K > 0) {
        #pragma unroll
        for (int reg_m = 0; reg_m < TM; ++reg_m) {
            const int m = tile_m + thread_m + reg_m * LM;
            if (m < M) {
                const float scale = A_scales[m];
                #pragma unroll
                for (int reg_n = 0; reg_n < TN; ++reg_n) {
                    const int n = tile_n + thread_n + (reg_n / PN) * (PN * LN) + reg_n % PN;
                    if (n < N) acc[reg_m][reg_n] = acc[reg_m][reg_n] * scale * B_scales[n];
                }
            }
        }
    }

    // recompute non-finite results in f32: splitting inf yields NaN (decompose)
    #pragma unroll
    for (int reg_m = 0; reg_m < TM; ++reg_m) {
        const int m = tile_m + thread_m + reg_m * LM;
        if (m < M) {
            #pragma unroll
            for (int reg_n = 0; reg_n < TN; ++reg_n) {
                const int n = tile_n + thread_n + (reg_n / PN) * (PN * LN) + reg_n % PN;
                if (n < N && !gg_is_finite(acc[reg_m][reg_n])) {
                    acc[reg_m][reg_n] = 0.0f;
                    #pragma unroll 1
                    for (int k = 0; k < K; ++k) {
                        acc[reg_m][reg_n] = fmaf(A[(long long)m * lda + k],
                            B[(long long)k * ldb + n], acc[reg_m][reg_n]);
                    }
                }
            }
        }
    }

    // the epilogue
    #pragma unroll
    for (int reg_m = 0; reg_m < TM; ++reg_m) {
        const int m = tile_m + thread_m + reg_m * LM;
        if (m < M) {
            #pragma unroll
            for (int reg_n = 0; reg_n < TN; ++reg_n) {
                const int n = tile_n + thread_n + (reg_n / PN) * (PN * LN) + reg_n % PN;
                if (n < N) {
                    const float old = beta != 0.0f ? C[(long long)m * ldc + n] : 0.0f;
                    C[(long long)m * ldc + n] = fmaf(beta, old, alpha * acc[reg_m][reg_n]);
                }
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(256)
gemm_split_rows(int rows, int columns,
    const float *__restrict__ x, int ldx, unsigned short *__restrict__ planes,
    float *__restrict__ scales)
{
    __shared__ float found[8];
    const int row = blockIdx.x;

    // the largest magnitude of the row
    float largest = 0.0f;
    #pragma unroll 8
    for (int first = 0; first < columns; first += 256) {
        const int column = first + threadIdx.x;
        if (column < columns)
            largest = fmaxf(largest, fabsf(x[(long long)row * ldx + column]));
    }
    largest = fmaxf(largest, gg_shuffle_xor(largest, 16));
    largest = fmaxf(largest, gg_shuffle_xor(largest, 8));
    largest = fmaxf(largest, gg_shuffle_xor(largest, 4));
    largest = fmaxf(largest, gg_shuffle_xor(largest, 2));
    largest = fmaxf(largest, gg_shuffle_xor(largest, 1));
    if (threadIdx.x % 32 == 0) found[threadIdx.x / 32] = largest;
    __syncthreads();
    #pragma unroll
    for (int part = 0; part < 8; ++part) largest = fmaxf(largest, found[part]);
    const float scale = gg_row_scale(largest);
    if (threadIdx.x == 0) scales[row] = 1.0f / scale;

    // x0 = f16(scale * x), x1 = f16(scale * x - x0) and so on, a plane each
    #pragma unroll 8
    for (int first = 0; first < columns; first += 256) {
        const int column = first + threadIdx.x;
        if (column < columns) {
            float rest = scale * x[(long long)row * ldx + column];
            #pragma unroll
            for (int part = 0; part < 2; ++part) {
                planes[((long long)part * rows + row) * (((columns - 1) / 8 + 1) * 8) + column] =
                    gg_to_f16(rest);
                rest = rest - gg_from_f16(gg_to_f16(rest));
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(1024)
gemm_split_columns(int rows, int columns,
    const float *__restrict__ x, int ldx, unsigned short *__restrict__ planes,
    float *__restrict__ scales)
{
    __shared__ float found[64][16];
    const int column = blockIdx.x * 16 + threadIdx.x % 16;

    // the largest magnitude of the column
    float largest = 0.0f;
    #pragma unroll 8
    for (int first = 0; first < rows; first += 64) {
        const int row = first + threadIdx.x / 16;
        if (row < rows && column < columns)
            largest = fmaxf(largest, fabsf(x[(long long)row * ldx + column]));
    }
    found[threadIdx.x / 16][threadIdx.x % 16] = largest;
    __syncthreads();
    #pragma unroll
    for (int part = 0; part < 64; ++part)
        largest = fmaxf(largest, found[part][threadIdx.x % 16]);
    const float scale = gg_row_scale(largest);
    if (threadIdx.x / 16 == 0 && column < columns) scales[column] = 1.0f / scale;

    // x0 = f16(scale * x), x1 = f16(scale * x - x0) and so on, a plane each
    #pragma unroll 8
    for (int first = 0; first < rows; first += 64) {
        const int row = first + threadIdx.x / 16;
        if (row < rows && column < columns) {
            float rest = scale * x[(long long)row * ldx + column];
            #pragma unroll
            for (int part = 0; part < 2; ++part) {
                planes[((long long)part * rows + row) * (((columns - 1) / 8 + 1) * 8) + column] =
                    gg_to_f16(rest);
                rest = rest - gg_from_f16(gg_to_f16(rest));
            }
        }
    }
}

// ---- end of kernel ----
}  // namespace gemm_detail

#ifndef __CUDACC_RTC__
namespace gemm_detail {
// CU_TENSOR_MAP_DATA_TYPE_* and CU_TENSOR_MAP_SWIZZLE_* of cuda.h
constexpr int gg_FLOAT16 = 6, gg_SWIZZLE_64B = 2, gg_SWIZZLE_128B = 3;

// A tensor as a map describes it: the innermost dimension first, strides of the others in bytes.
template <int RANK> struct gg_tensor {
    const void *address;
    long long sizes[RANK], strides[RANK - 1];
};
// The map of a tensor, which every device may use; before the first launch all sizes are 0.
template <int RANK> struct gg_kept_map { gg_tensor_map map; gg_tensor<RANK> tensor; };

// Encodes the map of a tensor with the driver's function (CUDA 12.5 or later), unless it is kept.
template <int RANK>
cudaError_t gg_encode_map(gg_kept_map<RANK> &kept, int type, const gg_tensor<RANK> &tensor,
                          const unsigned (&box)[RANK], int swizzle)
{
    bool same = kept.tensor.address == tensor.address;
    for (int i = 0; i < RANK; ++i) same &= kept.tensor.sizes[i] == tensor.sizes[i];
    for (int i = 0; i < RANK - 1; ++i) same &= kept.tensor.strides[i] == tensor.strides[i];
    if (same) return cudaSuccess;

    // cuTensorMapEncodeTiled, with int for its enums
    typedef int (*Encode)(gg_tensor_map *, int, unsigned, const void *, const long long *,
        const long long *, const unsigned *, const unsigned *, int, int, int, int);
    static thread_local Encode encode = nullptr;
    if (encode == nullptr) {
        void *found = nullptr;
        cudaDriverEntryPointQueryResult result;
        const cudaError_t error = cudaGetDriverEntryPointByVersion(
            "cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result);
        if (error != cudaSuccess) return error;
        if (result != cudaDriverEntryPointSuccess) return cudaErrorNotSupported;
        encode = reinterpret_cast<Encode>(found);
    }
    // A map must have nonzero extents and an address, even if nothing is read through it.
    gg_tensor_map map;
    gg_tensor<RANK> given = tensor;
    for (long long &size : given.sizes)
        if (size == 0) given.address = &map, size = 1;
    const unsigned steps[] = {1, 1, 1, 1, 1};
    // not interleaved (0), through L2 128 bytes at a time (2), zeros outside (0)
    const int error = encode(&map, type, RANK, given.address, given.sizes, given.strides,
                             box, steps, 0, swizzle, 2, 0);
    if (error == 0) kept = {map, tensor};
    return static_cast<cudaError_t>(error);
}
}  // namespace gemm_detail

// Checks the requirements, then launches gemm on the stream.
cudaError_t launch_gemm(int M, int N, int K,
    float alpha, const float *A, int lda, const float *B, int ldb, float beta, float *C, int ldc,
    unsigned short *A_parts, float *A_scales, unsigned short *B_parts, float *B_scales,
    cudaStream_t stream)
{
    using namespace gemm_detail;
    if (M < 0 || N < 0 || K < 0 || M > 2147483567 || N > 2147483567 || K > 2147483567 || lda < K ||
        ldb < N || ldc < N)
        return cudaErrorInvalidValue;
    if (reinterpret_cast<size_t>(A_parts) % 16 != 0 ||
        reinterpret_cast<size_t>(B_parts) % 16 != 0)
        return cudaErrorMisalignedAddress;
    if (M == 0 || N == 0) return cudaSuccess;
    if (alpha == 0) K = 0;  // as in BLAS
    const long long blocks = ((M - 1) / BM + 1LL) * ((N - 1) / BN + 1LL);
    if (blocks > 2147483647) return cudaErrorInvalidConfiguration;
    const int A_pitch = ((K + 7) / 8) * 8;  // elements of a row of A_parts, and of a plane
    const long long A_plane = (long long)M * A_pitch;
    const int B_pitch = ((N + 7) / 8) * 8;  // elements of a row of B_parts, and of a plane
    const long long B_plane = (long long)K * B_pitch;
    // this thread's last launch: its maps
    static thread_local gg_kept_map<3> A_parts_map, B_parts_map;
    cudaError_t error = gg_encode_map(A_parts_map, gg_FLOAT16,
        {A_parts, {K, M, 2}, {2LL * A_pitch, 2LL * A_plane}}, {BK, BM, 1}, gg_SWIZZLE_64B);
    if (error == cudaSuccess) error = gg_encode_map(B_parts_map, gg_FLOAT16,
        {B_parts, {N, K, 2}, {2LL * B_pitch, 2LL * B_plane}}, {BN, BK, 1}, gg_SWIZZLE_128B);
    if (error != cudaSuccess) return error;
    if (K > 0)
        gemm_split_rows<<<static_cast<unsigned>((long long)M), 256, 0, stream>>>(
            M, K, A, lda, A_parts, A_scales);
    if (K > 0)
        gemm_split_columns<<<static_cast<unsigned>((long long)((N - 1) / 16 +
            1)), 1024, 0, stream>>>(
            K, N, B, ldb, B_parts, B_scales);
    gemm<<<static_cast<unsigned>(blocks), THREADS, 0, stream>>>(
        M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, A_parts_map.map, A_scales, B_parts_map.map,
            B_scales);
    return cudaGetLastError();
}
#endif

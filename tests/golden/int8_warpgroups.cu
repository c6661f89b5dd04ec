// gemm: C[m, n] = alpha * acc + beta * C[m, n], acc = sum over k of A[m, k] * B[n, k] (A i8, B i8,
// C i32, accumulators i32)
//
// schedule (defaults left out):
//     gemm            C[m, n] = A[m, k] * B[n, k]
//     dtype           A=i8 B=i8 C=i32 acc=i32
//     target          sm_90a
//     tile            m=128 n=48 k=64
//     cache_shared    A[m, k] B[n, k]
//     warp_tile       m=128 n=24
//     tensor_core     via=wgmma
//     vectorize       C width=2
//     swizzle         A B
//     double_buffer   A B stages=3
//     async_copy      A B via=tma
// call (extents, leading dimensions: int; scalars: int; tensors: device pointers to signed char for
// A, B, int for C):
//     launch_gemm(M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, stream)
// launch:
//     ceil(M / 128) * ceil(N / 48) blocks of 256 threads; none if C is empty
//     K = 0 if alpha == 0: as in BLAS, A and B are not read
//     accumulators wrap to 32 bits; none does while K <= 131071
// tensor maps (cuTensorMapEncodeTiled; the innermost dimension first, strides in bytes):
//     A: UINT8, K x M, strides 1 * lda, box 64 x 128, swizzle 64B
//     B: UINT8, K x N, strides 1 * ldb, box 64 x 48, swizzle 64B
//     not interleaved, L2 promotion 128B, element strides 1, zeros outside
// requires (leading dimensions count elements):
//     lda >= K, ldb >= K, ldc >= N
//     M <= 2147483503, N <= 2147483583, K <= 2147483439
//     lda % 16 == 0, ldb % 16 == 0, ldc % 2 == 0
//     A, B aligned to 16 bytes
//     C aligned to 8 bytes
//     C overlaps none of A, B

namespace gemm_detail {
// A CUtensorMap, the descriptor of a tensor for TMA; the launcher encodes it.
struct alignas(128) gg_tensor_map { unsigned long long words[16]; };
// cvta.to.shared: the address by which PTX instructions take shared memory.
__device__ __forceinline__ unsigned gg_shared(const void *pointer)
{ return static_cast<unsigned>(__cvta_generic_to_shared(pointer)); }
// Copies 2 contiguous elements in one access.
__device__ __forceinline__ void copy2(int *target, const int *source)
{ *reinterpret_cast<int2 *>(target) = *reinterpret_cast<const int2 *>(source); }
// shfl.sync.idx: a warp-uniform copy of the value.
__device__ __forceinline__ int gg_uniform(int value) {
    int result;
    asm volatile("shfl.sync.idx.b32 %0, %1, 0, 0x1f, 0xffffffff;" : "=r"(result) : "r"(value));
    return result;
}
// mad.lo.s32: the lower 32 bits of a * b + c (wraps).
__device__ __forceinline__ int gg_mad(int a, int b, int c)
{ int sum; asm("mad.lo.s32 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(c)); return sum; }

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
__device__ __forceinline__ void gg_load_box_2d(void *target, const gg_tensor_map &map,
    unsigned long long &barrier, int i0, int i1)
{ asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
               " [%0], [%1, {%3, %4}], [%2];"
               :: "r"(gg_shared(target)), "l"(&map), "r"(gg_shared(&barrier)),
                  "r"(i0), "r"(i1) : "memory"); }

// The matrix descriptor of a K-major wgmma operand with the 64-byte swizzle of TMA; groups of 8
// rows are `stride` bytes apart.  A step along k adds its bytes / 16.
__device__ __forceinline__ unsigned long long gg_matrix_64B(const void *first, int stride = 512)
{ return (gg_shared(first) & 0x3ffff) >> 4 | 1ULL << 16 |
         static_cast<unsigned long long>(stride >> 4) << 32 | 2ULL << 62; }
// wgmma.fence: orders accesses to the accumulator registers before the next wgmma.
__device__ __forceinline__ void gg_wgmma_fence()
{ asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
// wgmma.commit_group: makes this warpgroup's uncommitted wgmma operations one group.
__device__ __forceinline__ void gg_wgmma_commit()
{ asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// wgmma.wait_group: waits until at most `pending` groups are in flight.
template <int pending> __device__ __forceinline__ void gg_wgmma_wait()
{ asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(pending) : "memory"); }
// wgmma.wait_group 0: waits for all groups; the operands keep reads of `acc` after it.
template <int rows, int columns>
__device__ __forceinline__ void gg_wgmma_end(int (&acc)[rows][columns]) {
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
    for (int i = 0; i < rows * columns; ++i)
        asm volatile("" : "+r"(acc[i / columns][i % columns]) :: "memory");
}

// wgmma.mma_async: c, d = a * b + (accumulate ? c, d : 0) for a warpgroup's 64 x 24 tile; operands
// of i8 in shared memory, both K-major.  A thread has two adjacent accumulators in every
// 8 columns, in row `c` and, 8 rows below, in row `d`.
__device__ __forceinline__ void gg_wgmma_m64n24k32_i8(
    int *c, int *d, unsigned long long a, unsigned long long b, int accumulate)
{
    asm volatile("{\n.reg .pred more;\nsetp.ne.b32 more, %14, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n24k32.s32.s8.s8 {"
        "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11}, "
        "%12, %13, more;\n}" :
    "+r"(c[0]),"+r"(c[1]),"+r"(d[0]),"+r"(d[1]),"+r"(c[2]),"+r"(c[3]),"+r"(d[2]),"+r"(d[3]),
    "+r"(c[4]),"+r"(c[5]),"+r"(d[4]),"+r"(d[5])
        : "l"(a), "l"(b), "r"(accumulate));
}

// ---- kernel ----
constexpr int BM = 128, BN = 48, BK = 64;  // threadblock tile of C, and its step along K
constexpr int WM = 32, WN = 24;  // warp tile
constexpr int TM = 4, TN = 6;  // micro-tile of a thread
constexpr int PN = 2;  // in vectors of this many adjacent elements
constexpr int LM = WM / TM, LN = WN / TN;  // threads along each side of a warp
constexpr int IK = 32;  // step of one instruction
constexpr int FM = 2;  // instructions per warpgroup along m
constexpr int VEC = 2;  // elements of a vector access
constexpr int STAGES = 3;  // tiles in shared memory
constexpr int WARPGROUP = 128;  // threads of a warpgroup
constexpr int THREADS = (BM / WM) * (BN / WN) * 32;
constexpr int STAGE_BYTES = BM * BK + BN * BK;  // bytes of the tiles in a stage
static_assert(WM % TM == 0 && WN % TN == 0, "the micro-tiles fill the tile");
static_assert(LM * LN == 32, "a warp's threads fill its tile");
static_assert(BK % IK == 0, "the steps fill the tile");
static_assert(THREADS <= 1024, "a block has at most 1024 threads");

// copies the elements before `stop` of a vector whose first index is `first` (vectorize)
__device__ __forceinline__ void copy2(int *target, const int *source, int first, int stop) {
    if (first + VEC - 1 < stop) return copy2(target, source);
    for (int e = 0; e < VEC; ++e) if (first + e < stop) target[e] = source[e];
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
gemm(int M, int N, int K,
    int alpha, const __grid_constant__ gg_tensor_map A, const __grid_constant__ gg_tensor_map B,
    int beta, int *__restrict__ C, int ldc)
{
    // tiles in shared memory (cache_shared; swizzle; double_buffer)
    __shared__ alignas(512) signed char A_shared[STAGES][BM][BK];
    __shared__ alignas(512) signed char B_shared[STAGES][BN][BK];
    static_assert(sizeof(A_shared) + sizeof(B_shared) <= 48 * 1024, "static shared memory: 48 KiB");

    // the block's tile of C (tile)
    const int blocks_n = (N - 1) / BN + 1;
    const int tile_m = (blockIdx.x / blocks_n) * BM;
    const int tile_n = (blockIdx.x % blocks_n) * BN;

    // the thread's position in it (tile; warp_tile; tensor_core)
    const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    const int thread_m = (warp % (BM / WM)) * WM + lane / LN;
    const int thread_n = (warp / (BM / WM)) * WN + (lane % LN) * PN;
    const int first_warp = gg_uniform(tid / WARPGROUP) * (WARPGROUP / 32);
    const int warpgroup_m = (first_warp % (BM / WM)) * WM;
    const int warpgroup_n = (first_warp / (BM / WM)) * WN;

    // registers: accumulators
    int acc[TM][TN];
    if (K == 0) {
        // zero the accumulators
        #pragma unroll
        for (int reg_m = 0; reg_m < TM; ++reg_m) {
            #pragma unroll
            for (int reg_n = 0; reg_n < TN; ++reg_n) acc[reg_m][reg_n] = 0;
        }
    }

    // one mbarrier per stage: a phase completes when a tile has arrived (async_copy)
    __shared__ alignas(8) unsigned long long full[STAGES];
    if (tid == 0) {
        for (int stage = 0; stage < STAGES; ++stage) gg_init_barrier(full[stage], 1);
        gg_fence_barrier_init();
    }
    __syncthreads();

    // copy the first tiles (async_copy)
    if (tid == 0) {
        for (int ahead = 0; ahead < STAGES - 1; ++ahead) {
            const int next_k = ahead * BK;
            if (next_k < K) {
                gg_expect_bytes(full[ahead], STAGE_BYTES);
                gg_load_box_2d(A_shared[ahead], A, full[ahead], next_k, tile_m);
                gg_load_box_2d(B_shared[ahead], B, full[ahead], next_k, tile_n);
            }
        }
    }
    int stage = 0, phase = 0;

    // main loop over tiles along K
    for (int tile_k = 0; tile_k < K; tile_k += BK) {
        while (!gg_try_wait(full[stage], phase)) {}

        // multiply the tile (tensor_core)
        const auto A_matrix = gg_matrix_64B(A_shared[stage][warpgroup_m], FM * 512);
        const auto B_matrix = gg_matrix_64B(B_shared[stage][warpgroup_n], 512);
        gg_wgmma_fence();
        #pragma unroll
        for (int k = 0; k < BK; k += IK) {
            #pragma unroll
            for (int inst_m = 0; inst_m < FM; ++inst_m) {
                gg_wgmma_m64n24k32_i8(acc[inst_m], acc[inst_m + FM],
                    A_matrix + k / 16 + inst_m * 32, B_matrix + k / 16, tile_k + k > 0);
            }
        }
        gg_wgmma_commit();

        // the previous wgmma is done: its stage is free
        gg_wgmma_wait<1>();
        __syncthreads();
        const int next_k = tile_k + (STAGES - 1) * BK;
        const int write_stage = stage > 0 ? stage - 1 : STAGES - 1;

        // copy a tile ahead (async_copy)
        if (tid == 0 && next_k < K) {
            gg_expect_bytes(full[write_stage], STAGE_BYTES);
            gg_load_box_2d(A_shared[write_stage], A, full[write_stage], next_k, tile_m);
            gg_load_box_2d(B_shared[write_stage], B, full[write_stage], next_k, tile_n);
        }
        if (++stage == STAGES) { stage = 0; phase ^= 1; }
    }

    // wait for the last wgmma: the accumulators are complete (tensor_core)
    gg_wgmma_end(acc);

    // the epilogue (vectorize)
    #pragma unroll
    for (int reg_m = 0; reg_m < TM; ++reg_m) {
        const int m = tile_m + thread_m + reg_m * LM;
        if (m < M) {
            #pragma unroll
            for (int reg_n = 0; reg_n < TN; reg_n += VEC) {
                const int n = tile_n + thread_n + reg_n * LN;
                alignas(16) int out[VEC];
                alignas(16) int old[VEC] = {};
                if (beta != 0) copy2(old, &C[(long long)m * ldc + n], n, N);
                for (int e = 0; e < VEC; ++e)
                    out[e] = gg_mad(beta, old[e], gg_mad(alpha, acc[reg_m][reg_n + e], 0));
                copy2(&C[(long long)m * ldc + n], out, n, N);
            }
        }
    }
}

// ---- end of kernel ----
}  // namespace gemm_detail

#ifndef __CUDACC_RTC__
namespace gemm_detail {
// CU_TENSOR_MAP_DATA_TYPE_* and CU_TENSOR_MAP_SWIZZLE_* of cuda.h
constexpr int gg_UINT8 = 0, gg_SWIZZLE_64B = 2;

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
    int alpha, const signed char *A, int lda, const signed char *B, int ldb, int beta, int *C,
    int ldc, cudaStream_t stream)
{
    using namespace gemm_detail;
    if (M < 0 || N < 0 || K < 0 || M > 2147483503 || N > 2147483583 || K > 2147483439 || lda < K ||
        ldb < K || ldc < N || lda % 16 != 0 || ldb % 16 != 0 || ldc % 2 != 0)
        return cudaErrorInvalidValue;
    if (reinterpret_cast<size_t>(A) % 16 != 0 || reinterpret_cast<size_t>(B) % 16 != 0 ||
        reinterpret_cast<size_t>(C) % 8 != 0)
        return cudaErrorMisalignedAddress;
    if (M == 0 || N == 0) return cudaSuccess;
    if (alpha == 0) K = 0;  // as in BLAS
    const long long blocks = ((M - 1) / BM + 1LL) * ((N - 1) / BN + 1LL);
    if (blocks > 2147483647) return cudaErrorInvalidConfiguration;
    // this thread's last launch: its maps
    static thread_local gg_kept_map<2> A_map, B_map;
    cudaError_t error =
        gg_encode_map(A_map, gg_UINT8, {A, {K, M}, {1LL * lda}}, {BK, BM}, gg_SWIZZLE_64B);
    if (error == cudaSuccess)
        error = gg_encode_map(B_map, gg_UINT8, {B, {K, N}, {1LL * ldb}}, {BK, BN}, gg_SWIZZLE_64B);
    if (error != cudaSuccess) return error;
    gemm<<<static_cast<unsigned>(blocks), THREADS, 0, stream>>>(
        M, N, K, alpha, A_map.map, B_map.map, beta, C, ldc);
    return cudaGetLastError();
}
#endif

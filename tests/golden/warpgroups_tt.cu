// gemm: C[m, n] = relu(acc + bias[n]), acc = sum over k of A[k, m] * B[n, k] (A bf16, B bf16, C
// bf16, accumulators f32)
//
// schedule (defaults left out):
//     gemm            C[m, n] = A[k, m] * B[n, k]
//     dtype           A=bf16 B=bf16 C=bf16
//     target          sm_90a
//     tile            m=256 n=64 k=32
//     cache_shared    A[k, m] B[n, k] C[m, n]
//     warp_tile       m=128 n=64
//     tensor_core     via=wgmma
//     vectorize       C width=2
//     swizzle         A B C
//     double_buffer   A B
//     async_copy      A B C via=tma
//     fuse_epilogue   relu(acc + bias[n])
// call (extents, leading dimensions: int; scalars: float; tensors: device pointers to unsigned
// short (bf16 bits)):
//     launch_gemm(M, N, K, A, lda, B, ldb, C, ldc, bias, stream)
// launch:
//     ceil(M / 256) * ceil(N / 64) blocks of 256 threads; none if C is empty
//     49152 bytes of dynamic shared memory a block
// tensor maps (cuTensorMapEncodeTiled; the innermost dimension first, strides in bytes):
//     A: BFLOAT16, M x K, strides 2 * lda, box 64 x 32, swizzle 128B
//     B: BFLOAT16, K x N, strides 2 * ldb, box 32 x 64, swizzle 64B
//     C: BFLOAT16, N x M, strides 2 * ldc, box 64 x 8, swizzle 128B
//     not interleaved, L2 promotion 128B, element strides 1, zeros outside
// requires (leading dimensions count elements):
//     lda >= M, ldb >= K, ldc >= N
//     M <= 2147483375, N <= 2147483567, K <= 2147483567
//     lda % 8 == 0, ldb % 8 == 0, ldc % 8 == 0, N % 8 == 0
//     A, B, C aligned to 16 bytes
//     C overlaps none of A, B, bias

namespace gemm_detail {
// A CUtensorMap, the descriptor of a tensor for TMA; the launcher encodes it.
struct alignas(128) gg_tensor_map { unsigned long long words[16]; };
// cvta.to.shared: the address by which PTX instructions take shared memory.
__device__ __forceinline__ unsigned gg_shared(const void *pointer)
{ return static_cast<unsigned>(__cvta_generic_to_shared(pointer)); }
// shfl.sync.idx: a warp-uniform copy of the value.
__device__ __forceinline__ int gg_uniform(int value) {
    int result;
    asm volatile("shfl.sync.idx.b32 %0, %1, 0, 0x1f, 0xffffffff;" : "=r"(result) : "r"(value));
    return result;
}
// mov.b32: bf16 bits to float: they are its upper half.
__device__ __forceinline__ float gg_from_bf16(unsigned short bits) {
    float number;
    asm("mov.b32 %0, {%1, %2};" : "=f"(number) : "h"(static_cast<unsigned short>(0)), "h"(bits));
    return number;
}
// cvt.rn.bf16.f32: float to bf16 bits, rounded to nearest even.
__device__ __forceinline__ unsigned short gg_to_bf16(float number)
{ unsigned short bits; asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(number)); return bits; }

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
// cp.async.bulk.tensor: TMA stores a box to a tensor, from these coordinates on, not outside it.
__device__ __forceinline__ void gg_store_box_2d(const gg_tensor_map &map, const void *source,
    int i0, int i1)
{ asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"
               " [%0, {%2, %3}], [%1];"
               :: "l"(&map), "r"(gg_shared(source)), "r"(i0), "r"(i1) : "memory"); }
// fence.proxy.async: orders this thread's accesses to shared memory before later TMA accesses.
__device__ __forceinline__ void gg_fence_async()
{ asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
// cp.async.bulk.commit_group: makes this thread's uncommitted TMA stores one group.
__device__ __forceinline__ void gg_commit_boxes()
{ asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// cp.async.bulk.wait_group.read: waits until at most `pending` groups still read shared memory.
template <int pending> __device__ __forceinline__ void gg_await_boxes()
{ asm volatile("cp.async.bulk.wait_group.read %0;" :: "n"(pending) : "memory"); }

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
// wgmma.wait_group: waits until at most `pending` groups are in flight.
template <int pending> __device__ __forceinline__ void gg_wgmma_wait()
{ asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(pending) : "memory"); }
// wgmma.wait_group 0: waits for all groups; the operands keep reads of `acc` after it.
template <int rows, int columns>
__device__ __forceinline__ void gg_wgmma_end(float (&acc)[rows][columns]) {
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
    for (int i = 0; i < rows * columns; ++i)
        asm volatile("" : "+f"(acc[i / columns][i % columns]) :: "memory");
}

// wgmma.mma_async: c, d = a * b + (accumulate ? c, d : 0) for a warpgroup's 64 x 64 tile; operands
// of bf16 in shared memory, a M-major, b K-major.  A thread has two adjacent accumulators in every
// 8 columns, in row `c` and, 8 rows below, in row `d`.
__device__ __forceinline__ void gg_wgmma_m64n64k16_bf16_mn_major_a(
    float *c, float *d, unsigned long long a, unsigned long long b, int accumulate)
{
    asm volatile("{\n.reg .pred more;\nsetp.ne.b32 more, %34, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
        "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,"
        "%24,%25,%26,%27,%28,%29,%30,%31}, "
        "%32, %33, more, 1, 1, 1, 0;\n}" :
    "+f"(c[0]),"+f"(c[1]),"+f"(d[0]),"+f"(d[1]),"+f"(c[2]),"+f"(c[3]),"+f"(d[2]),"+f"(d[3]),
    "+f"(c[4]),"+f"(c[5]),"+f"(d[4]),"+f"(d[5]),"+f"(c[6]),"+f"(c[7]),"+f"(d[6]),"+f"(d[7]),
    "+f"(c[8]),"+f"(c[9]),"+f"(d[8]),"+f"(d[9]),"+f"(c[10]),"+f"(c[11]),"+f"(d[10]),"+f"(d[11]),
    "+f"(c[12]),"+f"(c[13]),"+f"(d[12]),"+f"(d[13]),"+f"(c[14]),"+f"(c[15]),"+f"(d[14]),"+f"(d[15])
        : "l"(a), "l"(b), "r"(accumulate));
}

// stmatrix.x4: a warp stores four matrices of 8 x 8 elements of 16 bits, two of each
// lane.  Lane 8 * i + r names row r of matrix i: 16 bytes at a multiple of 16.
__device__ __forceinline__ void gg_stmatrix_x4(unsigned short *row, const unsigned short *pairs) {
    const unsigned *const held = reinterpret_cast<const unsigned *>(pairs);
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                 :: "r"(gg_shared(row)),
                    "r"(held[0]), "r"(held[1]), "r"(held[2]), "r"(held[3]) : "memory");
}

// ---- kernel ----
constexpr int BM = 256, BN = 64, BK = 32;  // threadblock tile of C, and its step along K
constexpr int WM = 32, WN = 64;  // warp tile
constexpr int TM = 4, TN = 16;  // micro-tile of a thread
constexpr int PN = 2;  // in vectors of this many adjacent elements
constexpr int LM = WM / TM, LN = WN / TN;  // threads along each side of a warp
constexpr int IK = 16;  // step of one instruction
constexpr int FM = 2;  // instructions per warpgroup along m
constexpr int VEC = 2;  // elements of a vector access
constexpr int A_ATOM = 64;  // elements of a swizzle atom's row
constexpr int C_ROWS = (BM / WM) * LM;  // rows of C in shared memory at a time
constexpr int WARPGROUP = 128;  // threads of a warpgroup
constexpr int THREADS = (BM / WM) * (BN / WN) * 32;
constexpr int STAGE_BYTES = BK * BM * 2 + BN * BK * 2;  // bytes of the tiles in a stage
constexpr int SHARED_BYTES = 2 * (BM / A_ATOM) * BK * A_ATOM * 2 + 2 * BN * BK * 2 +
    C_ROWS * BN * 2;
static_assert(WM % TM == 0 && WN % TN == 0, "the micro-tiles fill the tile");
static_assert(LM * LN == 32, "a warp's threads fill its tile");
static_assert(BK % IK == 0, "the steps fill the tile");
static_assert(THREADS <= 1024, "a block has at most 1024 threads");
static_assert(SHARED_BYTES <= 227 * 1024, "a block has at most 227 KiB");

extern "C" __global__ void __launch_bounds__(THREADS, 2)
gemm(int M, int N, int K,
    const __grid_constant__ gg_tensor_map A, const __grid_constant__ gg_tensor_map B,
    const __grid_constant__ gg_tensor_map C, const unsigned short *__restrict__ bias)
{
    // tiles in shared memory (cache_shared; swizzle; double_buffer; tensor_core)
    alignas(1024) extern __shared__ unsigned char shared_memory_1024[];
    auto *const A_shared = reinterpret_cast<unsigned short(*)[BM / A_ATOM][BK][A_ATOM]>(
        shared_memory_1024);
    auto *const B_shared = reinterpret_cast<unsigned short(*)[BN][BK]>(A_shared + 2);
    auto *const C_shared = reinterpret_cast<unsigned short(*)[BN]>(B_shared + 2);

    // the block's tile of C (tile)
    const int blocks_n = (N - 1) / BN + 1;
    const int tile_m = (blockIdx.x / blocks_n) * BM;
    const int tile_n = (blockIdx.x % blocks_n) * BN;

    // the thread's position in it (tile; warp_tile; tensor_core)
    const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    const int thread_m = (warp % (BM / WM)) * (WM / FM) + lane / LN;
    const int thread_n = (warp / (BM / WM)) * WN + (lane % LN) * PN;
    const int first_warp = gg_uniform(tid / WARPGROUP) * (WARPGROUP / 32);
    const int warpgroup_m = (first_warp % (BM / WM)) * (WM / FM);
    const int warpgroup_n = (first_warp / (BM / WM)) * WN;

    // registers: accumulators
    float acc[TM][TN];
    if (K == 0) {
        // zero the accumulators
        #pragma unroll
        for (int reg_m = 0; reg_m < TM; ++reg_m) {
            #pragma unroll
            for (int reg_n = 0; reg_n < TN; ++reg_n) acc[reg_m][reg_n] = 0.0f;
        }
    }

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
        for (int box_m = 0; box_m < BM; box_m += A_ATOM)
            gg_load_box_2d(A_shared[0][box_m / A_ATOM], A, full[0], tile_m + box_m, 0);
        gg_load_box_2d(B_shared, B, full[0], 0, tile_n);
    }
    int stage = 0, phase = 0;

    // main loop over tiles along K
    for (int tile_k = 0; tile_k < K; tile_k += BK) {
        while (!gg_try_wait(full[stage], phase)) {}

        // multiply the tile (tensor_core)
        const auto A_matrix =
            gg_matrix_128B_mn_major(A_shared[stage][warpgroup_m / A_ATOM], BK * 128);
        const auto B_matrix = gg_matrix_64B(B_shared[stage][warpgroup_n], 512);
        gg_wgmma_fence();
        #pragma unroll
        for (int k = 0; k < BK; k += IK) {
            #pragma unroll
            for (int inst_m = 0; inst_m < FM; ++inst_m) {
                gg_wgmma_m64n64k16_bf16_mn_major_a(acc[inst_m * (TM / FM)],
                    acc[inst_m * (TM / FM) + 1],
                    A_matrix + k * 128 / 16 + (inst_m * (BM / FM) / A_ATOM) * (BK * 128 / 16),
                    B_matrix + k * 2 / 16, tile_k + k > 0);
            }
        }
        gg_wgmma_commit();

        // the previous wgmma is done: its stage is free
        gg_wgmma_wait<1>();
        __syncthreads();
        const int next_k = tile_k + BK, next_stage = 1 - stage;

        // copy a tile ahead (async_copy)
        if (tid == 0 && next_k < K) {
            gg_expect_bytes(full[next_stage], STAGE_BYTES);
            for (int box_m = 0; box_m < BM; box_m += A_ATOM) {
                gg_load_box_2d(A_shared[next_stage][box_m / A_ATOM], A, full[next_stage],
                    tile_m + box_m, next_k);
            }
            gg_load_box_2d(B_shared[next_stage], B, full[next_stage], next_k, tile_n);
        }
        if (++stage == 2) { stage = 0; phase ^= 1; }
    }

    // wait for the last wgmma: the accumulators are complete (tensor_core)
    gg_wgmma_end(acc);

    // the epilogue: one row of each micro-tile at a time (cache_shared; tensor_core; swizzle)
    #pragma unroll
    for (int reg_m = 0; reg_m < TM; ++reg_m) {
        if (tid == 0) gg_await_boxes<0>();
        __syncthreads();

        // stage it in shared memory (vectorize; fuse_epilogue)
        {
            const int slice_m = (warp % (BM / WM)) * LM + lane % 8;
            const int slice_n = (lane / 8) * 8;
            const int m =
                tile_m + thread_m + (reg_m / (TM / FM)) * (BM / FM) + (reg_m % (TM / FM)) * LM;
            #pragma unroll
            for (int reg_n = 0; reg_n < TN; reg_n += 4 * VEC) {
                alignas(16) unsigned short out[4 * VEC] = {};
                if (m < M) {
                    #pragma unroll
                    for (int matrix_n = 0; matrix_n < 4; ++matrix_n) {
                        const int n = tile_n + thread_n + (reg_n + matrix_n * VEC) * LN;
                        for (int e = 0; e < VEC; ++e) {
                            const float value =
                                acc[reg_m][reg_n + matrix_n * VEC + e] + (n + e < N ?
                                    gg_from_bf16(bias[n + e]) : 0.0f);
                            out[matrix_n * VEC + e] = gg_to_bf16(value < 0.0f ? 0.0f : value);
                        }
                    }
                }
                gg_stmatrix_x4(&C_shared[slice_m][(slice_n + reg_n * LN) ^ ((slice_m % 8) * 8)],
                    out);
            }
        }
        gg_fence_async();
        __syncthreads();

        // store it with TMA: nothing outside the tensor (vectorize; async_copy)
        if (tid == 0) {
            for (int box_m = 0; box_m < C_ROWS; box_m += LM) {
                gg_store_box_2d(C, C_shared[box_m], tile_n,
                    tile_m + (box_m / LM) * (WM / FM) + box_m % LM + (reg_m / (TM / FM)) * (BM /
                    FM) + (reg_m % (TM / FM)) * LM);
            }
            gg_commit_boxes();
        }
    }

    // the block must not exit before TMA has read shared memory (async_copy)
    if (tid == 0) gg_await_boxes<0>();
}

// ---- end of kernel ----
}  // namespace gemm_detail

#ifndef __CUDACC_RTC__
namespace gemm_detail {
// CU_TENSOR_MAP_DATA_TYPE_* and CU_TENSOR_MAP_SWIZZLE_* of cuda.h
constexpr int gg_BFLOAT16 = 9, gg_SWIZZLE_128B = 3, gg_SWIZZLE_64B = 2;

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
    const unsigned short *A, int lda, const unsigned short *B, int ldb, unsigned short *C,
    int ldc, const unsigned short *bias, cudaStream_t stream)
{
    using namespace gemm_detail;
    if (M < 0 || N < 0 || K < 0 || M > 2147483375 || N > 2147483567 || K > 2147483567 || lda < M ||
        ldb < K || ldc < N || lda % 8 != 0 || ldb % 8 != 0 || ldc % 8 != 0 || N % 8 != 0)
        return cudaErrorInvalidValue;
    if (reinterpret_cast<size_t>(A) % 16 != 0 || reinterpret_cast<size_t>(B) % 16 != 0 ||
        reinterpret_cast<size_t>(C) % 16 != 0)
        return cudaErrorMisalignedAddress;
    if (M == 0 || N == 0) return cudaSuccess;
    const long long blocks = ((M - 1) / BM + 1LL) * ((N - 1) / BN + 1LL);
    if (blocks > 2147483647) return cudaErrorInvalidConfiguration;
    // this thread's last launch: its maps, its device
    static thread_local gg_kept_map<2> A_map, B_map, C_map;
    static thread_local int ready = -1;
    int device = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess && device != ready) {
        ready = -1;
        error =
            cudaFuncSetAttribute(gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
        if (error == cudaSuccess) ready = device;
    }
    if (error == cudaSuccess) error = gg_encode_map(A_map, gg_BFLOAT16, {A, {M, K}, {2LL * lda}},
        {A_ATOM, BK}, gg_SWIZZLE_128B);
    if (error == cudaSuccess) error = gg_encode_map(B_map, gg_BFLOAT16, {B, {K, N}, {2LL * ldb}},
        {BK, BN}, gg_SWIZZLE_64B);
    if (error == cudaSuccess) error = gg_encode_map(C_map, gg_BFLOAT16, {C, {N, M}, {2LL * ldc}},
        {BN, LM}, gg_SWIZZLE_128B);
    if (error != cudaSuccess) return error;
    gemm<<<static_cast<unsigned>(blocks), THREADS, SHARED_BYTES, stream>>>(
        M, N, K, A_map.map, B_map.map, C_map.map, bias);
    return cudaGetLastError();
}
#endif

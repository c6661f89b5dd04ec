// gemm: C[m, n] = relu(acc + bias[n]), acc = sum over k of A[m, k] * B[k, n] (A f16, B f16, C f16,
// accumulators f32)
//
// schedule (defaults left out):
//     gemm            C[m, n] = A[m, k] * B[k, n]
//     dtype           A=f16 B=f16 C=f16
//     target          sm_90a
//     tile            m=24 n=128 k=32
//     cache_shared    A[m, k] B[k, n] C[m, n]
//     warp_tile       m=24 n=64
//     tensor_core     via=wgmma rows=n
//     swizzle         A B C
//     double_buffer   A B
//     async_copy      A B C via=tma
//     persistent
//     warp_specialize producers=1 consumers=2
//     fuse_epilogue   relu(acc + bias[n])
// call (extents, leading dimensions: int; scalars: float; tensors: device pointers to unsigned
// short (f16 bits)):
//     launch_gemm(M, N, K, A, lda, B, ldb, C, ldc, bias, stream)
// launch:
//     min(ceil(N / 128) * ceil(M / 24), 2 x multiprocessors) blocks of 384 threads
//     each walks over its share of the tiles; none if C is empty
// tensor maps (cuTensorMapEncodeTiled; the innermost dimension first, strides in bytes):
//     A: FLOAT16, K x M, strides 2 * lda, box 32 x 24, swizzle 64B
//     B: FLOAT16, N x K, strides 2 * ldb, box 64 x 32, swizzle 128B
//     C: FLOAT16, N x M, strides 2 * ldc, box 64 x 8, swizzle 128B
//     not interleaved, L2 promotion 128B, element strides 1, zeros outside
// requires (leading dimensions count elements):
//     lda >= K, ldb >= N, ldc >= N
//     N <= 2147483503, M <= 2147483607, K <= 2147483567
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
// mbarrier.arrive: one arrival; releases this thread's earlier accesses to the waiters.
__device__ __forceinline__ void gg_arrive(unsigned long long &barrier)
{ asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(gg_shared(&barrier)) : "memory"); }

// bar.sync: named barrier `number` for `threads` threads, which are whole warps.
__device__ __forceinline__ void gg_sync_warps(int number, int threads)
{ asm volatile("bar.sync %0, %1;" :: "r"(number), "r"(threads) : "memory"); }
// setmaxnreg.dec: `count` registers per thread of the warpgroup.
template <int count> __device__ __forceinline__ void gg_fewer_registers()
{ asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(count)); }
// setmaxnreg.inc: `count` registers per thread of the warpgroup (waits until free).
template <int count> __device__ __forceinline__ void gg_more_registers()
{ asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(count)); }

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

// wgmma.mma_async: c, d = a * b + (accumulate ? c, d : 0) for a warpgroup's 64 x 24 tile; operands
// of f16 in shared memory, a M-major, b K-major.  A thread has two adjacent accumulators in every
// 8 columns, in row `c` and, 8 rows below, in row `d`.
__device__ __forceinline__ void gg_wgmma_m64n24k16_f16_mn_major_a(
    float *c, float *d, unsigned long long a, unsigned long long b, int accumulate)
{
    asm volatile("{\n.reg .pred more;\nsetp.ne.b32 more, %14, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n24k16.f32.f16.f16 {"
        "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11}, "
        "%12, %13, more, 1, 1, 1, 0;\n}" :
    "+f"(c[0]),"+f"(c[1]),"+f"(d[0]),"+f"(d[1]),"+f"(c[2]),"+f"(c[3]),"+f"(d[2]),"+f"(d[3]),
    "+f"(c[4]),"+f"(c[5]),"+f"(d[4]),"+f"(d[5])
        : "l"(a), "l"(b), "r"(accumulate));
}

// stmatrix.x2.trans: a warp stores two matrices of 8 x 8 elements of 16 bits, two of each
// lane, transposed.  Lane 8 * i + r names row r of matrix i: 16 bytes at a multiple of 16.
__device__ __forceinline__ void gg_stmatrix_x2_trans(
    unsigned short *row, const unsigned short *pairs)
{
    const unsigned *const held = reinterpret_cast<const unsigned *>(pairs);
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};"
                 :: "r"(gg_shared(row)),
                    "r"(held[0]), "r"(held[1]) : "memory");
}

// ---- kernel ----
constexpr int BN = 128, BM = 24, BK = 32;  // threadblock tile of C, and its step along K
constexpr int WN = 16, WM = 24;  // warp tile
constexpr int TN = 2, TM = 6;  // micro-tile of a thread
constexpr int PM = 2;  // in vectors of this many adjacent elements
constexpr int LN = WN / TN, LM = WM / TM;  // threads along each side of a warp
constexpr int IK = 16;  // step of one instruction
constexpr int B_ATOM = 64, C_ATOM = 64;  // elements of a swizzle atom's row
constexpr int C_ROWS = (BM / WM) * (PM * LM);  // rows of C in shared memory at a time
constexpr int WARPGROUP = 128;  // threads of a warpgroup
constexpr int CONSUMERS = (BN / WN) * (BM / WM) * 32;  // threads of all consumers
constexpr int CONSUMER_BARRIER = 1;  // named barrier of the consumers; 0 is __syncthreads
constexpr int PRODUCER_REGISTERS = 24, CONSUMER_REGISTERS = 104;  // registers of a thread
constexpr int THREADS = CONSUMERS + WARPGROUP;
constexpr int STAGE_BYTES = BM * BK * 2 + BK * BN * 2;  // bytes of the tiles in a stage
static_assert(WN % TN == 0 && WM % TM == 0, "the micro-tiles fill the tile");
static_assert(LN * LM == 32, "a warp's threads fill its tile");
static_assert(BK % IK == 0, "the steps fill the tile");
static_assert(THREADS <= 1024, "a block has at most 1024 threads");

// the first row and column of a tile of C, by its number (tile)
__device__ __forceinline__ void tile_at(int own_tile, int blocks_m, int &tile_n, int &tile_m) {
    tile_n = (own_tile / blocks_m) * BN;
    tile_m = (own_tile % blocks_m) * BM;
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
gemm(int M, int N, int K,
    const __grid_constant__ gg_tensor_map A, const __grid_constant__ gg_tensor_map B,
    const __grid_constant__ gg_tensor_map C, const unsigned short *__restrict__ bias)
{
    // tiles in shared memory (cache_shared; swizzle; double_buffer; tensor_core)
    __shared__ alignas(512) unsigned short A_shared[2][BM][BK];
    __shared__ alignas(1024) unsigned short B_shared[2][BN / B_ATOM][BK][B_ATOM];
    __shared__ alignas(1024) unsigned short C_shared[BN / C_ATOM][C_ROWS][C_ATOM];
    static_assert(sizeof(A_shared) + sizeof(B_shared) + sizeof(C_shared) <= 48 * 1024,
        "static shared memory: 48 KiB");

    // mbarriers of each stage: full, a tile arrived; empty, all warps have read it (async_copy;
    // warp_specialize)
    __shared__ alignas(8) unsigned long long full[2], empty[2];
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < 2; ++stage) {
            gg_init_barrier(full[stage], 1);
            gg_init_barrier(empty[stage], CONSUMERS / 32);
        }
        gg_fence_barrier_init();
    }
    __syncthreads();

    // the tiles of C
    const int blocks_n = (N - 1) / BN + 1, blocks_m = (M - 1) / BM + 1;
    const int tiles = blocks_n * blocks_m;

    if (threadIdx.x >= CONSUMERS) {
        // the producer: load tiles into empty stages (warp_specialize)
        gg_fewer_registers<PRODUCER_REGISTERS>();
        if (threadIdx.x == CONSUMERS) {
            int stage = 0, phase = 1;

            // each of the block's tiles (persistent)
            for (int own_tile = blockIdx.x; own_tile < tiles; own_tile += gridDim.x) {
                int tile_n, tile_m;
                tile_at(own_tile, blocks_m, tile_n, tile_m);
                for (int tile_k = 0; tile_k < K; tile_k += BK) {
                    while (!gg_try_wait(empty[stage], phase)) {}
                    gg_expect_bytes(full[stage], STAGE_BYTES);
                    gg_load_box_2d(A_shared[stage], A, full[stage], tile_k, tile_m);
                    for (int box_n = 0; box_n < BN; box_n += B_ATOM) {
                        gg_load_box_2d(B_shared[stage][box_n / B_ATOM], B, full[stage],
                            tile_n + box_n, tile_k);
                    }
                    if (++stage == 2) { stage = 0; phase ^= 1; }
                }
            }
        }
    } else {
        // the consumers: multiply full stages, then run the epilogue (warp_specialize)
        gg_more_registers<CONSUMER_REGISTERS>();

        // the thread's position in a tile (tile; warp_tile; tensor_core)
        const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
        const int thread_n = (warp % (BN / WN)) * WN + lane / LM;
        const int thread_m = (warp / (BN / WN)) * WM + (lane % LM) * PM;
        const int first_warp = gg_uniform(tid / WARPGROUP) * (WARPGROUP / 32);
        const int warpgroup_n = (first_warp % (BN / WN)) * WN;
        const int warpgroup_m = (first_warp / (BN / WN)) * WM;

        // registers: accumulators
        float acc[TN][TM];
        int stage = 0, phase = 0;

        // each of the block's tiles (persistent)
        for (int own_tile = blockIdx.x; own_tile < tiles; own_tile += gridDim.x) {
            int tile_n, tile_m;
            tile_at(own_tile, blocks_m, tile_n, tile_m);
            if (K == 0) {
                // zero the accumulators
                #pragma unroll
                for (int reg_n = 0; reg_n < TN; ++reg_n) {
                    #pragma unroll
                    for (int reg_m = 0; reg_m < TM; ++reg_m) acc[reg_n][reg_m] = 0.0f;
                }
            }

            // main loop over tiles along K
            for (int tile_k = 0; tile_k < K; tile_k += BK) {
                while (!gg_try_wait(full[stage], phase)) {}

                // multiply the tile (tensor_core)
                const auto B_matrix =
                    gg_matrix_128B_mn_major(B_shared[stage][warpgroup_n / B_ATOM], BK * 128);
                const auto A_matrix = gg_matrix_64B(A_shared[stage][warpgroup_m], 512);
                gg_wgmma_fence();
                #pragma unroll
                for (int k = 0; k < BK; k += IK) {
                    gg_wgmma_m64n24k16_f16_mn_major_a(acc[0], acc[1], B_matrix + k * 128 / 16,
                        A_matrix + k * 2 / 16, tile_k + k > 0);
                }
                gg_wgmma_commit();

                // the previous wgmma is done: its stage is free
                gg_wgmma_wait<1>();
                if (tile_k > 0) {
                    __syncwarp();
                    if (threadIdx.x % 32 == 0) gg_arrive(empty[1 - stage]);
                }
                if (++stage == 2) { stage = 0; phase ^= 1; }
            }

            // wait for the last wgmma: the accumulators are complete (tensor_core)
            gg_wgmma_end(acc);
            if (K > 0) {
                __syncwarp();
                if (threadIdx.x % 32 == 0) gg_arrive(empty[1 - stage]);
            }

            // the epilogue: 2 rows of each micro-tile at a time (cache_shared; tensor_core;
            // swizzle)
            #pragma unroll
            for (int reg_m = 0; reg_m < TM; reg_m += PM) {
                if (threadIdx.x == 0) gg_await_boxes<0>();
                gg_sync_warps(CONSUMER_BARRIER, CONSUMERS);

                // stage it in shared memory (fuse_epilogue)
                {
                    const int slice_m = lane % 8;
                    const int slice_n = (warp % (BN / WN)) * WN + (lane / 8 % 2) * 8;
                    #pragma unroll
                    for (int reg_n = 0; reg_n < TN; reg_n += 2) {
                        alignas(16) unsigned short out[2 * PM] = {};
                        #pragma unroll
                        for (int matrix_n = 0; matrix_n < 2; ++matrix_n) {
                            const int n = tile_n + thread_n + (reg_n + matrix_n) * LN;
                            if (n < N) {
                                #pragma unroll
                                for (int e = 0; e < PM; ++e) {
                                    const int m = tile_m + thread_m + reg_m * LM + e;
                                    if (m < M) {
                                        const float value =
                                            acc[reg_n + matrix_n][reg_m + e] + gg_from_f16(bias[n]);
                                        out[matrix_n * PM + e] =
                                            gg_to_f16(value < 0.0f ? 0.0f : value);
                                    }
                                }
                            }
                        }
                        gg_stmatrix_x2_trans(
                            &C_shared[(slice_n + reg_n * LN) / C_ATOM][slice_m]
                            [((slice_n + reg_n * LN) % C_ATOM) ^ (slice_m * 8)], out);
                    }
                }
                gg_fence_async();
                gg_sync_warps(CONSUMER_BARRIER, CONSUMERS);

                // store it with TMA: nothing outside the tensor (async_copy)
                if (threadIdx.x == 0) {
                    for (int box_n = 0; box_n < BN; box_n += C_ATOM) {
                        gg_store_box_2d(C, C_shared[box_n / C_ATOM], tile_n + box_n,
                            tile_m + reg_m * LM);
                    }
                    gg_commit_boxes();
                }
            }
        }

        // the block must not exit before TMA has read shared memory (async_copy)
        if (threadIdx.x == 0) gg_await_boxes<0>();
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
    const unsigned short *A, int lda, const unsigned short *B, int ldb, unsigned short *C,
    int ldc, const unsigned short *bias, cudaStream_t stream)
{
    using namespace gemm_detail;
    if (M < 0 || N < 0 || K < 0 || N > 2147483503 || M > 2147483607 || K > 2147483567 || lda < K ||
        ldb < N || ldc < N || lda % 8 != 0 || ldb % 8 != 0 || ldc % 8 != 0 || N % 8 != 0)
        return cudaErrorInvalidValue;
    if (reinterpret_cast<size_t>(A) % 16 != 0 || reinterpret_cast<size_t>(B) % 16 != 0 ||
        reinterpret_cast<size_t>(C) % 16 != 0)
        return cudaErrorMisalignedAddress;
    if (N == 0 || M == 0) return cudaSuccess;
    const long long tiles = ((N - 1) / BN + 1LL) * ((M - 1) / BM + 1LL);
    if (tiles > 1073741824) return cudaErrorInvalidConfiguration;
    // this thread's last launch: its maps, its device, and the multiprocessors of this
    static thread_local gg_kept_map<2> A_map, B_map, C_map;
    static thread_local int ready = -1, multiprocessors = 0;
    int device = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess && device != ready) {
        ready = -1;
        error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
        if (error == cudaSuccess) ready = device;
    }
    if (error == cudaSuccess) error = gg_encode_map(A_map, gg_FLOAT16, {A, {K, M}, {2LL * lda}},
        {BK, BM}, gg_SWIZZLE_64B);
    if (error == cudaSuccess) error = gg_encode_map(B_map, gg_FLOAT16, {B, {N, K}, {2LL * ldb}},
        {B_ATOM, BK}, gg_SWIZZLE_128B);
    if (error == cudaSuccess) error = gg_encode_map(C_map, gg_FLOAT16, {C, {N, M}, {2LL * ldc}},
        {C_ATOM, 8}, gg_SWIZZLE_128B);
    if (error != cudaSuccess) return error;
    const long long blocks = tiles < 2 * multiprocessors ? tiles : 2 * multiprocessors;
    gemm<<<static_cast<unsigned>(blocks), THREADS, 0, stream>>>(
        M, N, K, A_map.map, B_map.map, C_map.map, bias);
    return cudaGetLastError();
}
#endif

// gemm: C[m, n] = relu(acc + bias[n]), acc = sum over k of A[k, m] * B[n, k] (A bf16, B bf16, C
// bf16, accumulators f32)
//
// schedule (defaults left out):
//     gemm            C[m, n] = A[k, m] * B[n, k]
//     dtype           A=bf16 B=bf16 C=bf16
//     target          sm_90a
//     tile            m=128 n=128 k=128
//     cache_shared    A[k, m] B[n, k] C[m, n]
//     warp_tile       m=64 n=32
//     tensor_core     via=mma
//     vectorize       C width=2
//     swizzle         A B C
//     double_buffer   A B
//     async_copy      A B C via=tma
//     warp_specialize producers=1
//     fuse_epilogue   relu(acc + bias[n])
// call (extents, leading dimensions: int; scalars: float; tensors: device pointers to unsigned
// short (bf16 bits)):
//     launch_gemm(M, N, K, A, lda, B, ldb, C, ldc, bias, stream)
// launch:
//     ceil(M / 128) * ceil(N / 128) blocks of 384 threads; none if C is empty
//     135168 bytes of dynamic shared memory a block
// tensor maps (cuTensorMapEncodeTiled; the innermost dimension first, strides in bytes):
//     A: BFLOAT16, M x K, strides 2 * lda, box 64 x 128, swizzle 128B
//     B: BFLOAT16, K x N, strides 2 * ldb, box 64 x 128, swizzle 128B
//     C: BFLOAT16, N x M, strides 2 * ldc, box 64 x 8, swizzle 128B
//     not interleaved, L2 promotion 128B, element strides 1, zeros outside
// requires (leading dimensions count elements):
//     lda >= M, ldb >= K, ldc >= N
//     M <= 2147483503, N <= 2147483503, K <= 2147483375
//     lda % 8 == 0, ldb % 8 == 0, ldc % 8 == 0, N % 8 == 0
//     A, B, C aligned to 16 bytes
//     C overlaps none of A, B, bias

namespace gemm_detail {
// A CUtensorMap, the descriptor of a tensor for TMA; the launcher encodes it.
struct alignas(128) gg_tensor_map { unsigned long long words[16]; };
// cvta.to.shared: the address by which PTX instructions take shared memory.
__device__ __forceinline__ unsigned gg_shared(const void *pointer)
{ return static_cast<unsigned>(__cvta_generic_to_shared(pointer)); }
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

// ldmatrix.x4.trans: a warp loads four matrices of 8 x 8 elements of 16 bits, each to a register
// of every lane, transposed.  Lane 8 * i + r names row r of matrix i: 16 bytes at a multiple of 16.
__device__ __forceinline__ void gg_ldmatrix_x4_trans(
    unsigned *fragment, const unsigned short *row)
{
    const unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
                 : "r"(from) : "memory");
}

// mma.m16n8k16: acc += a * b of warp fragments, bf16; adjacent accumulators in each of two
// rows that are 8 apart.
__device__ __forceinline__ void gg_mma_m16n8k16_bf16(
    float *upper, float *lower, const unsigned *a, const unsigned *b)
{ asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(upper[0]), "+f"(upper[1]), "+f"(lower[0]), "+f"(lower[1])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])); }
// stmatrix.x4: a warp stores four matrices of 8 x 8 elements of 16 bits, two of each
// lane.  Lane 8 * i + r names row r of matrix i: 16 bytes at a multiple of 16.
__device__ __forceinline__ void gg_stmatrix_x4(unsigned short *row, const unsigned short *pairs) {
    const unsigned *const held = reinterpret_cast<const unsigned *>(pairs);
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                 :: "r"(gg_shared(row)),
                    "r"(held[0]), "r"(held[1]), "r"(held[2]), "r"(held[3]) : "memory");
}

// ---- kernel ----
constexpr int BM = 128, BN = 128, BK = 128;  // threadblock tile of C, and its step along K
constexpr int WM = 64, WN = 32;  // warp tile
constexpr int TM = 8, TN = 8;  // micro-tile of a thread
constexpr int PN = 2;  // in vectors of this many adjacent elements
constexpr int LM = WM / TM, LN = WN / TN;  // threads along each side of a warp
constexpr int IM = 16, IN = 8, IK = 16;  // tile of one instruction
constexpr int FM = WM / IM, FN = WN / IN;  // fragments of a warp
constexpr int VEC = 2;  // elements of a vector access
constexpr int A_ATOM = 64, B_ATOM = 64, C_ATOM = 64;  // elements of a swizzle atom's row
constexpr int C_ROWS = (BM / WM) * LM;  // rows of C in shared memory at a time
constexpr int WARPGROUP = 128;  // threads of a warpgroup
constexpr int CONSUMERS = (BM / WM) * (BN / WN) * 32;  // threads of all consumers
constexpr int CONSUMER_BARRIER = 1;  // named barrier of the consumers; 0 is __syncthreads
constexpr int PRODUCER_REGISTERS = 24, CONSUMER_REGISTERS = 240;  // registers of a thread
constexpr int THREADS = CONSUMERS + WARPGROUP;
constexpr int STAGE_BYTES = BK * BM * 2 + BN * BK * 2;  // bytes of the tiles in a stage
constexpr int SHARED_BYTES = 2 * (BM / A_ATOM) * BK * A_ATOM * 2 +
    2 * (BK / B_ATOM) * BN * B_ATOM * 2 + (BN / C_ATOM) * C_ROWS * C_ATOM * 2;
static_assert(WM % TM == 0 && WN % TN == 0, "the micro-tiles fill the tile");
static_assert(LM * LN == 32, "a warp's threads fill its tile");
static_assert(BK % IK == 0, "the steps fill the tile");
static_assert(THREADS <= 1024, "a block has at most 1024 threads");
static_assert(SHARED_BYTES <= 227 * 1024, "a block has at most 227 KiB");

extern "C" __global__ void __launch_bounds__(THREADS, 1)
gemm(int M, int N, int K,
    const __grid_constant__ gg_tensor_map A, const __grid_constant__ gg_tensor_map B,
    const __grid_constant__ gg_tensor_map C, const unsigned short *__restrict__ bias)
{
    // tiles in shared memory (cache_shared; swizzle; double_buffer; tensor_core)
    alignas(1024) extern __shared__ unsigned char shared_memory_1024[];
    auto *const A_shared = reinterpret_cast<unsigned short(*)[BM / A_ATOM][BK][A_ATOM]>(
        shared_memory_1024);
    auto *const B_shared = reinterpret_cast<unsigned short(*)[BK / B_ATOM][BN][B_ATOM]>(
        A_shared + 2);
    auto *const C_shared = reinterpret_cast<unsigned short(*)[C_ROWS][C_ATOM]>(B_shared + 2);

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

    // the block's tile of C (tile)
    const int blocks_n = (N - 1) / BN + 1;
    const int tile_m = (blockIdx.x / blocks_n) * BM;
    const int tile_n = (blockIdx.x % blocks_n) * BN;

    if (threadIdx.x >= CONSUMERS) {
        // the producer: load tiles into empty stages (warp_specialize)
        gg_fewer_registers<PRODUCER_REGISTERS>();
        if (threadIdx.x == CONSUMERS) {
            int stage = 0, phase = 1;
            for (int tile_k = 0; tile_k < K; tile_k += BK) {
                while (!gg_try_wait(empty[stage], phase)) {}
                gg_expect_bytes(full[stage], STAGE_BYTES);
                for (int box_m = 0; box_m < BM; box_m += A_ATOM) {
                    gg_load_box_2d(A_shared[stage][box_m / A_ATOM], A, full[stage], tile_m + box_m,
                        tile_k);
                }
                for (int box_k = 0; box_k < BK; box_k += B_ATOM) {
                    gg_load_box_2d(B_shared[stage][box_k / B_ATOM], B, full[stage], tile_k + box_k,
                        tile_n);
                }
                if (++stage == 2) { stage = 0; phase ^= 1; }
            }
        }
    } else {
        // the consumers: multiply full stages, then run the epilogue (warp_specialize)
        gg_more_registers<CONSUMER_REGISTERS>();

        // the thread's position in the tile (tile; warp_tile; tensor_core)
        const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
        const int thread_m = (warp / (BN / WN)) * WM + lane / LN;
        const int thread_n = (warp % (BN / WN)) * WN + (lane % LN) * PN;
        const int A_row_m = (warp / (BN / WN)) * WM + (lane / 8 % 2) * 8;
        const int A_row_k = lane % 8 + (lane / 16) * 8;
        const int B_row_n = (warp % (BN / WN)) * WN + lane % 8 + (lane / 16) * 8;
        const int B_row_k = (lane / 8 % 2) * 8;

        // registers: operand fragments, accumulators
        unsigned A_frag[FM * 4];
        unsigned B_frag[FN * 2];
        float acc[TM][TN] = {};
        int stage = 0, phase = 0;

        // main loop over tiles along K
        for (int tile_k = 0; tile_k < K; tile_k += BK) {
            while (!gg_try_wait(full[stage], phase)) {}

            // multiply the tile (tensor_core)
            #pragma unroll
            for (int k = 0; k < BK; k += IK) {
                #pragma unroll
                for (int frag_m = 0; frag_m < FM; ++frag_m) {
                    gg_ldmatrix_x4_trans(&A_frag[frag_m * 4],
                        &A_shared[stage][(A_row_m + frag_m * IM) / A_ATOM][A_row_k + k]
                        [((A_row_m + frag_m * IM) % A_ATOM) ^ ((A_row_k % 8) * 8)]);
                }
                #pragma unroll
                for (int frag_n = 0; frag_n < FN; frag_n += 2) {
                    gg_ldmatrix_x4(&B_frag[frag_n * 2],
                        &B_shared[stage][(B_row_k + k) / B_ATOM][B_row_n + frag_n * IN]
                        [((B_row_k + k) % B_ATOM) ^ ((B_row_n % 8) * 8)]);
                }
                #pragma unroll
                for (int frag_m = 0; frag_m < FM; ++frag_m) {
                    #pragma unroll
                    for (int frag_n = 0; frag_n < FN; ++frag_n) {
                        gg_mma_m16n8k16_bf16(&acc[frag_m * 2][frag_n * 2],
                            &acc[frag_m * 2 + 1][frag_n * 2], &A_frag[frag_m * 4],
                            &B_frag[frag_n * 2]);
                    }
                }
            }
            gg_fence_async();
            __syncwarp();
            if (threadIdx.x % 32 == 0) gg_arrive(empty[stage]);
            if (++stage == 2) { stage = 0; phase ^= 1; }
        }

        // the epilogue: one row of each micro-tile at a time (cache_shared; tensor_core; swizzle)
        #pragma unroll
        for (int reg_m = 0; reg_m < TM; ++reg_m) {
            if (threadIdx.x == 0) gg_await_boxes<0>();
            gg_sync_warps(CONSUMER_BARRIER, CONSUMERS);

            // stage it in shared memory (vectorize; fuse_epilogue)
            {
                const int slice_m = (warp / (BN / WN)) * LM + lane % 8;
                const int slice_n = (warp % (BN / WN)) * WN + (lane / 8) * 8;
                const int m = tile_m + thread_m + reg_m * LM;
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
                    gg_stmatrix_x4(
                        &C_shared[(slice_n + reg_n * LN) / C_ATOM][slice_m]
                        [((slice_n + reg_n * LN) % C_ATOM) ^ ((slice_m % 8) * 8)], out);
                }
            }
            gg_fence_async();
            gg_sync_warps(CONSUMER_BARRIER, CONSUMERS);

            // store it with TMA: nothing outside the tensor (vectorize; async_copy)
            if (threadIdx.x == 0) {
                for (int box_m = 0; box_m < C_ROWS; box_m += LM) {
                    for (int box_n = 0; box_n < BN; box_n += C_ATOM) {
                        gg_store_box_2d(C, C_shared[box_n / C_ATOM][box_m], tile_n + box_n,
                            tile_m + (box_m / LM) * WM + box_m % LM + reg_m * LM);
                    }
                }
                gg_commit_boxes();
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
constexpr int gg_BFLOAT16 = 9, gg_SWIZZLE_128B = 3;

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
    if (M < 0 || N < 0 || K < 0 || M > 2147483503 || N > 2147483503 || K > 2147483375 || lda < M ||
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
        {B_ATOM, BN}, gg_SWIZZLE_128B);
    if (error == cudaSuccess) error = gg_encode_map(C_map, gg_BFLOAT16, {C, {N, M}, {2LL * ldc}},
        {C_ATOM, LM}, gg_SWIZZLE_128B);
    if (error != cudaSuccess) return error;
    gemm<<<static_cast<unsigned>(blocks), THREADS, SHARED_BYTES, stream>>>(
        M, N, K, A_map.map, B_map.map, C_map.map, bias);
    return cudaGetLastError();
}
#endif

// gemm: C[m, n] = alpha * acc + beta * C[m, n], acc = sum over k of A[m, k] * B[n, k] (A bf16, B
// bf16, C bf16, accumulators f32)
//
// schedule (defaults left out):
//     gemm            C[m, n] = A[m, k] * B[n, k]
//     dtype           A=bf16 B=bf16 C=bf16
//     target          sm_90a
//     tile            m=64 n=32 k=64
//     cache_shared    A[m, k] B[n, k]
//     warp_tile       m=32 n=16
//     tensor_core     via=mma
//     vectorize       C width=2
//     swizzle         A B
//     double_buffer   A B stages=3
//     async_copy      A B via=tma
//     persistent
//     warp_specialize producers=1
//     cluster         m=2
// call (extents, leading dimensions: int; scalars: float; tensors: device pointers to unsigned
// short (bf16 bits)):
//     launch_gemm(M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, stream)
// launch:
//     min(ceil(M / 128) * ceil(N / 32) * 2, 2 x clusters) blocks of 256 threads
//     each walks over its share of the tiles; none if C is empty
//     in clusters of 2 x 1 blocks, as many as the GPU runs at a time
//     K = 0 if alpha == 0: as in BLAS, A and B are not read
// tensor maps (cuTensorMapEncodeTiled; the innermost dimension first, strides in bytes):
//     A: BFLOAT16, K x M, strides 2 * lda, box 64 x 64, swizzle 128B
//     B: BFLOAT16, K x N, strides 2 * ldb, box 64 x 16, swizzle 128B
//     not interleaved, L2 promotion 128B, element strides 1, zeros outside
// requires (leading dimensions count elements):
//     lda >= K, ldb >= K, ldc >= N
//     M <= 2147483503, N <= 2147483599, K <= 2147483439
//     lda % 8 == 0, ldb % 8 == 0, ldc % 2 == 0
//     A, B aligned to 16 bytes
//     C aligned to 4 bytes
//     C overlaps none of A, B

namespace gemm_detail {
// A CUtensorMap, the descriptor of a tensor for TMA; the launcher encodes it.
struct alignas(128) gg_tensor_map { unsigned long long words[16]; };
// cvta.to.shared: the address by which PTX instructions take shared memory.
__device__ __forceinline__ unsigned gg_shared(const void *pointer)
{ return static_cast<unsigned>(__cvta_generic_to_shared(pointer)); }
// Copies 2 contiguous elements in one access.
__device__ __forceinline__ void copy2(unsigned short *target, const unsigned short *source)
{ *reinterpret_cast<unsigned *>(target) = *reinterpret_cast<const unsigned *>(source); }
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
// mapa, mbarrier.arrive: one arrival at this barrier in the cluster's block of this rank.
__device__ __forceinline__ void gg_arrive_at(unsigned long long &barrier, int rank)
{ asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
               "mbarrier.arrive.shared::cluster.b64 _, [there];\n}"
               :: "r"(gg_shared(&barrier)), "r"(rank) : "memory"); }

// barrier.cluster: waits until all threads of the cluster have arrived.
__device__ __forceinline__ void gg_sync_cluster() {
    __syncwarp();
    asm volatile("barrier.cluster.arrive.release.aligned;\n"
                 "barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
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
// cp.async.bulk.tensor, multicast: TMA loads a box, zeros outside the tensor, into the same shared
// address of each block of the cluster whose bit is set; the barrier there counts its bytes.
__device__ __forceinline__ void gg_multicast_box_2d(void *target, const gg_tensor_map &map,
    unsigned long long &barrier, int i0, int i1, int blocks)
{ asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
               ".multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;"
               :: "r"(gg_shared(target)), "l"(&map), "r"(gg_shared(&barrier)), "r"(i0), "r"(i1),
                  "h"(static_cast<unsigned short>(blocks)) : "memory"); }
// fence.proxy.async: orders this thread's accesses to shared memory before later TMA accesses.
__device__ __forceinline__ void gg_fence_async()
{ asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

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

// mma.m16n8k16: acc += a * b of warp fragments, bf16; adjacent accumulators in each of two
// rows that are 8 apart.
__device__ __forceinline__ void gg_mma_m16n8k16_bf16(
    float *upper, float *lower, const unsigned *a, const unsigned *b)
{ asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(upper[0]), "+f"(upper[1]), "+f"(lower[0]), "+f"(lower[1])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])); }

// ---- kernel ----
constexpr int BM = 64, BN = 32, BK = 64;  // threadblock tile of C, and its step along K
constexpr int WM = 32, WN = 16;  // warp tile
constexpr int TM = 4, TN = 4;  // micro-tile of a thread
constexpr int PN = 2;  // in vectors of this many adjacent elements
constexpr int LM = WM / TM, LN = WN / TN;  // threads along each side of a warp
constexpr int IM = 16, IN = 8, IK = 16;  // tile of one instruction
constexpr int FM = WM / IM, FN = WN / IN;  // fragments of a warp
constexpr int VEC = 2;  // elements of a vector access
constexpr int STAGES = 3;  // tiles in shared memory
constexpr int CLUSTER_M = 2, CLUSTER_N = 1, CLUSTER = CLUSTER_M * CLUSTER_N;  // blocks of a cluster
constexpr int B_BLOCKS = (1 << CLUSTER) - 1;  // bit mask: blocks that share the first block's tile
constexpr int WARPGROUP = 128;  // threads of a warpgroup
constexpr int CONSUMERS = (BM / WM) * (BN / WN) * 32;  // threads of all consumers
constexpr int PRODUCER_REGISTERS = 24, CONSUMER_REGISTERS = 232;  // registers of a thread
constexpr int THREADS = CONSUMERS + WARPGROUP;
constexpr int STAGE_BYTES = BM * BK * 2 + BN * BK * 2;  // bytes of the tiles in a stage
static_assert(WM % TM == 0 && WN % TN == 0, "the micro-tiles fill the tile");
static_assert(LM * LN == 32, "a warp's threads fill its tile");
static_assert(BK % IK == 0, "the steps fill the tile");
static_assert(THREADS <= 1024, "a block has at most 1024 threads");

// the first row and column of a tile of C, by its number (tile; cluster)
__device__ __forceinline__ void tile_at(int own_tile, int rank_m, int clusters_n, int &tile_m,
    int &tile_n)
{
    const int cluster = own_tile / CLUSTER;
    tile_m = ((cluster / clusters_n) * CLUSTER_M + rank_m) * BM;
    tile_n = (cluster % clusters_n) * BN;
}

// copies the elements before `stop` of a vector whose first index is `first` (vectorize)
__device__ __forceinline__ void copy2(unsigned short *target, const unsigned short *source,
    int first, int stop)
{
    if (first + VEC - 1 < stop) return copy2(target, source);
    for (int e = 0; e < VEC; ++e) if (first + e < stop) target[e] = source[e];
}

extern "C" __global__ void __cluster_dims__(CLUSTER) __launch_bounds__(THREADS, 2)
gemm(int M, int N, int K,
    float alpha, const __grid_constant__ gg_tensor_map A, const __grid_constant__ gg_tensor_map B,
    float beta, unsigned short *__restrict__ C, int ldc)
{
    // tiles in shared memory (cache_shared; swizzle; double_buffer)
    __shared__ alignas(1024) unsigned short A_shared[STAGES][BM][BK];
    __shared__ alignas(1024) unsigned short B_shared[STAGES][BN][BK];
    static_assert(sizeof(A_shared) + sizeof(B_shared) <= 48 * 1024, "static shared memory: 48 KiB");

    // mbarriers of each stage: full, a tile arrived; empty, all warps of the cluster have read it
    // (async_copy; warp_specialize; cluster)
    __shared__ alignas(8) unsigned long long full[STAGES], empty[STAGES];
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            gg_init_barrier(full[stage], 1);
            gg_init_barrier(empty[stage], CLUSTER * (CONSUMERS / 32));
        }
        gg_fence_barrier_init();
    }
    gg_sync_cluster();

    // the tiles of C
    const int rank_m = blockIdx.x % CLUSTER;
    const int clusters_m = (M - 1) / (BM * CLUSTER_M) + 1;
    const int clusters_n = (N - 1) / BN + 1;
    const int tiles = clusters_m * clusters_n * CLUSTER;

    if (threadIdx.x >= CONSUMERS) {
        // the producer: load tiles into empty stages (warp_specialize)
        gg_fewer_registers<PRODUCER_REGISTERS>();
        if (threadIdx.x == CONSUMERS) {
            // the first row of each shared tile that this block multicasts (cluster)
            const int B_n = rank_m * (BN / CLUSTER_M);
            int stage = 0, phase = 1;

            // each of the block's tiles (persistent)
            for (int own_tile = blockIdx.x; own_tile < tiles; own_tile += gridDim.x) {
                int tile_m, tile_n;
                tile_at(own_tile, rank_m, clusters_n, tile_m, tile_n);
                for (int tile_k = 0; tile_k < K; tile_k += BK) {
                    while (!gg_try_wait(empty[stage], phase)) {}
                    gg_expect_bytes(full[stage], STAGE_BYTES);
                    gg_load_box_2d(A_shared[stage], A, full[stage], tile_k, tile_m);
                    gg_multicast_box_2d(B_shared[stage][B_n], B, full[stage], tile_k, tile_n + B_n,
                        B_BLOCKS);
                    if (++stage == STAGES) { stage = 0; phase ^= 1; }
                }
            }
        }
    } else {
        // the consumers: multiply full stages, then run the epilogue (warp_specialize)
        gg_more_registers<CONSUMER_REGISTERS>();

        // the thread's position in a tile (tile; warp_tile; tensor_core)
        const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
        const int thread_m = (warp / (BN / WN)) * WM + lane / LN;
        const int thread_n = (warp % (BN / WN)) * WN + (lane % LN) * PN;
        const int A_row_m = (warp / (BN / WN)) * WM + lane % 16;
        const int A_row_k = (lane / 16) * 8;
        const int B_row_n = (warp % (BN / WN)) * WN + lane % 8 + (lane / 16) * 8;
        const int B_row_k = (lane / 8 % 2) * 8;

        // registers: operand fragments, accumulators
        unsigned A_frag[FM * 4];
        unsigned B_frag[FN * 2];
        float acc[TM][TN];
        int stage = 0, phase = 0;

        // each of the block's tiles (persistent)
        for (int own_tile = blockIdx.x; own_tile < tiles; own_tile += gridDim.x) {
            int tile_m, tile_n;
            tile_at(own_tile, rank_m, clusters_n, tile_m, tile_n);

            // zero the accumulators
            #pragma unroll
            for (int reg_m = 0; reg_m < TM; ++reg_m) {
                #pragma unroll
                for (int reg_n = 0; reg_n < TN; ++reg_n) acc[reg_m][reg_n] = 0.0f;
            }

            // main loop over tiles along K
            for (int tile_k = 0; tile_k < K; tile_k += BK) {
                while (!gg_try_wait(full[stage], phase)) {}

                // multiply the tile (tensor_core)
                #pragma unroll
                for (int k = 0; k < BK; k += IK) {
                    #pragma unroll
                    for (int frag_m = 0; frag_m < FM; ++frag_m) {
                        gg_ldmatrix_x4(&A_frag[frag_m * 4],
                            &A_shared[stage][A_row_m + frag_m * IM]
                            [(A_row_k + k) ^ ((A_row_m % 8) * 8)]);
                    }
                    gg_ldmatrix_x4(B_frag,
                        &B_shared[stage][B_row_n][(B_row_k + k) ^ ((B_row_n % 8) * 8)]);
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
                if (threadIdx.x % 32 < CLUSTER) gg_arrive_at(empty[stage], threadIdx.x % 32);
                if (++stage == STAGES) { stage = 0; phase ^= 1; }
            }

            // the epilogue (vectorize)
            #pragma unroll
            for (int reg_m = 0; reg_m < TM; ++reg_m) {
                const int m = tile_m + thread_m + reg_m * LM;
                if (m < M) {
                    #pragma unroll
                    for (int reg_n = 0; reg_n < TN; reg_n += VEC) {
                        const int n = tile_n + thread_n + reg_n * LN;
                        alignas(16) unsigned short out[VEC];
                        alignas(16) unsigned short old[VEC] = {};
                        if (beta != 0.0f) copy2(old, &C[(long long)m * ldc + n], n, N);
                        for (int e = 0; e < VEC; ++e) {
                            out[e] = gg_to_bf16(fmaf(beta, gg_from_bf16(old[e]),
                                alpha * acc[reg_m][reg_n + e]));
                        }
                        copy2(&C[(long long)m * ldc + n], out, n, N);
                    }
                }
            }
        }
    }

    // a block must not exit while others arrive at its barriers (cluster)
    gg_sync_cluster();
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
    float alpha, const unsigned short *A, int lda, const unsigned short *B, int ldb, float beta,
    unsigned short *C, int ldc, cudaStream_t stream)
{
    using namespace gemm_detail;
    if (M < 0 || N < 0 || K < 0 || M > 2147483503 || N > 2147483599 || K > 2147483439 || lda < K ||
        ldb < K || ldc < N || lda % 8 != 0 || ldb % 8 != 0 || ldc % 2 != 0)
        return cudaErrorInvalidValue;
    if (reinterpret_cast<size_t>(A) % 16 != 0 || reinterpret_cast<size_t>(B) % 16 != 0 ||
        reinterpret_cast<size_t>(C) % 4 != 0)
        return cudaErrorMisalignedAddress;
    if (M == 0 || N == 0) return cudaSuccess;
    if (alpha == 0) K = 0;  // as in BLAS
    const long long tiles = ((M - 1) / (BM * CLUSTER_M) + 1LL) * ((N - 1) / BN + 1LL) * CLUSTER;
    if (tiles > 1073741824) return cudaErrorInvalidConfiguration;
    // this thread's last launch: its maps, its device, and the clusters that this runs at a time
    static thread_local gg_kept_map<2> A_map, B_map;
    static thread_local int ready = -1, clusters = 0;
    int device = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess && device != ready) {
        ready = -1;
        const cudaLaunchConfig_t together = {CLUSTER, THREADS, 0, stream, nullptr, 0};
        error = cudaOccupancyMaxActiveClusters(&clusters, gemm, &together);
        if (error == cudaSuccess) ready = device;
    }
    if (error == cudaSuccess) error = gg_encode_map(A_map, gg_BFLOAT16, {A, {K, M}, {2LL * lda}},
        {BK, BM}, gg_SWIZZLE_128B);
    if (error == cudaSuccess) error = gg_encode_map(B_map, gg_BFLOAT16, {B, {K, N}, {2LL * ldb}},
        {BK, BN / CLUSTER_M}, gg_SWIZZLE_128B);
    if (error != cudaSuccess) return error;
    const long long blocks = tiles < CLUSTER * clusters ? tiles : CLUSTER * clusters;
    gemm<<<static_cast<unsigned>(blocks), THREADS, 0, stream>>>(
        M, N, K, alpha, A_map.map, B_map.map, beta, C, ldc);
    return cudaGetLastError();
}
#endif

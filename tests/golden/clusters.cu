// gemm: C[m, n] = alpha * acc + beta * C[m, n], acc = sum over k of A[k, m] * B[k, n] (f32)
//
// schedule (defaults left out):
//     gemm            C[m, n] = A[k, m] * B[k, n]
//     target          sm_90a
//     tile            m=32 n=64 k=8
//     cache_shared    A[k, m] B[k, n]
//     register_block  m=4 n=8
//     vectorize       C width=4
//     double_buffer   A B stages=3
//     async_copy      A B via=tma
//     raster          group=2
//     persistent
//     warp_specialize producers=1
//     cluster         m=2 n=2
// call (extents, leading dimensions: int; scalars: float; tensors: device pointers to float):
//     launch_gemm(M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, stream)
// launch:
//     min(ceil(M / 64) * ceil(N / 128) * 4, 4 x clusters) blocks of 192 threads
//     each walks over its share of the tiles; none if C is empty
//     in clusters of 2 x 2 blocks, as many as the GPU runs at a time
//     K = 0 if alpha == 0: as in BLAS, A and B are not read
// tensor maps (cuTensorMapEncodeTiled; the innermost dimension first, strides in bytes):
//     A: FLOAT32, M x K, strides 4 * lda, box 32 x 4
//     B: FLOAT32, N x K, strides 4 * ldb, box 64 x 4
//     neither interleaved nor swizzled, L2 promotion 128B, element strides 1, zeros outside
// requires (leading dimensions count elements):
//     lda >= M, ldb >= N, ldc >= N
//     M <= 2147483567, N <= 2147483503, K <= 2147483607
//     lda % 4 == 0, ldb % 4 == 0, ldc % 4 == 0
//     A, B, C aligned to 16 bytes
//     C overlaps none of A, B

namespace gemm_detail {
// A CUtensorMap, the descriptor of a tensor for TMA; the launcher encodes it.
struct alignas(128) gg_tensor_map { unsigned long long words[16]; };
// cvta.to.shared: the address by which PTX instructions take shared memory.
__device__ __forceinline__ unsigned gg_shared(const void *pointer)
{ return static_cast<unsigned>(__cvta_generic_to_shared(pointer)); }
// Copies 4 contiguous elements in one access.
__device__ __forceinline__ void copy4(float *target, const float *source)
{ *reinterpret_cast<float4 *>(target) = *reinterpret_cast<const float4 *>(source); }

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

// ---- kernel ----
constexpr int BM = 32, BN = 64, BK = 8;  // threadblock tile of C, and its step along K
constexpr int TM = 4, TN = 8;  // micro-tile of a thread
constexpr int LM = BM / TM, LN = BN / TN;  // threads along each side of the block
constexpr int VEC = 4;  // elements of a vector access
constexpr int STAGES = 3;  // tiles in shared memory
constexpr int GROUP = 2;  // rows of clusters in a group
constexpr int CLUSTER_M = 2, CLUSTER_N = 2, CLUSTER = CLUSTER_M * CLUSTER_N;  // blocks of a cluster
// bit mask: blocks that share the first block's tile
constexpr int A_BLOCKS = (1 << CLUSTER_N) - 1;
constexpr int B_BLOCKS = ((1 << CLUSTER) - 1) / ((1 << CLUSTER_N) - 1);
constexpr int WARPGROUP = 128;  // threads of a warpgroup
constexpr int CONSUMERS = LM * LN;  // threads of all consumers
constexpr int THREADS = CONSUMERS + WARPGROUP;
constexpr int STAGE_BYTES = BK * BM * 4 + BK * BN * 4;  // bytes of the tiles in a stage
static_assert(BM % TM == 0 && BN % TN == 0, "the micro-tiles fill the tile");
static_assert(THREADS <= 1024, "a block has at most 1024 threads");

// the first row and column of a tile of C, by its number (tile; raster; cluster)
__device__ __forceinline__ void tile_at(int own_tile, int rank_m, int rank_n, int clusters_m,
    int clusters_n, int &tile_m, int &tile_n)
{
    const int cluster = own_tile / CLUSTER;
    const int full_group = clusters_m < GROUP ? clusters_m : GROUP;
    const int group = (cluster / (full_group * clusters_n)) * full_group;
    const int group_rows = clusters_m - group < full_group ? clusters_m - group : full_group;
    const int tile_in_group = cluster % (full_group * clusters_n);
    tile_m = ((group + tile_in_group % group_rows) * CLUSTER_M + rank_m) * BM;
    tile_n = ((tile_in_group / group_rows) * CLUSTER_N + rank_n) * BN;
}

// copies the elements before `stop` of a vector whose first index is `first` (vectorize)
__device__ __forceinline__ void copy4(float *target, const float *source, int first, int stop) {
    if (first + VEC - 1 < stop) return copy4(target, source);
    for (int e = 0; e < VEC; ++e) if (first + e < stop) target[e] = source[e];
}

extern "C" __global__ void __cluster_dims__(CLUSTER) __launch_bounds__(THREADS, 2)
gemm(int M, int N, int K,
    float alpha, const __grid_constant__ gg_tensor_map A, const __grid_constant__ gg_tensor_map B,
    float beta, float *__restrict__ C, int ldc)
{
    // tiles in shared memory (cache_shared; double_buffer)
    __shared__ alignas(128) float A_shared[STAGES][BK][BM];
    __shared__ alignas(128) float B_shared[STAGES][BK][BN];
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
    const int rank = blockIdx.x % CLUSTER;
    const int rank_m = rank / CLUSTER_N, rank_n = rank % CLUSTER_N;
    const int clusters_m = (M - 1) / (BM * CLUSTER_M) + 1;
    const int clusters_n = (N - 1) / (BN * CLUSTER_N) + 1;
    const int tiles = clusters_m * clusters_n * CLUSTER;

    if (threadIdx.x >= CONSUMERS) {
        // the producer: load tiles into empty stages (warp_specialize)
        if (threadIdx.x == CONSUMERS) {
            // the first row of each shared tile that this block multicasts (cluster)
            const int A_k = rank_n * (BK / CLUSTER_N);
            const int B_k = rank_m * (BK / CLUSTER_M);
            int stage = 0, phase = 1;

            // each of the block's tiles (persistent)
            for (int own_tile = blockIdx.x; own_tile < tiles; own_tile += gridDim.x) {
                int tile_m, tile_n;
                tile_at(own_tile, rank_m, rank_n, clusters_m, clusters_n, tile_m, tile_n);
                for (int tile_k = 0; tile_k < K; tile_k += BK) {
                    while (!gg_try_wait(empty[stage], phase)) {}
                    gg_expect_bytes(full[stage], STAGE_BYTES);
                    gg_multicast_box_2d(A_shared[stage][A_k], A, full[stage], tile_m, tile_k + A_k,
                        A_BLOCKS << (rank_m * CLUSTER_N));
                    gg_multicast_box_2d(B_shared[stage][B_k], B, full[stage], tile_n, tile_k + B_k,
                        B_BLOCKS << rank_n);
                    if (++stage == STAGES) { stage = 0; phase ^= 1; }
                }
            }
        }
    } else {
        // the consumers: multiply full stages, then run the epilogue (warp_specialize)
        // the thread's position in a tile (tile; register_block)
        const int tid = threadIdx.x;
        const int thread_m = (tid / LN) * TM, thread_n = (tid % LN) * TN;

        // registers: operand fragments, accumulators
        float A_frag[TM], B_frag[TN], acc[TM][TN];
        int stage = 0, phase = 0;

        // each of the block's tiles (persistent)
        for (int own_tile = blockIdx.x; own_tile < tiles; own_tile += gridDim.x) {
            int tile_m, tile_n;
            tile_at(own_tile, rank_m, rank_n, clusters_m, clusters_n, tile_m, tile_n);

            // zero the accumulators
            #pragma unroll
            for (int reg_m = 0; reg_m < TM; ++reg_m) {
                #pragma unroll
                for (int reg_n = 0; reg_n < TN; ++reg_n) acc[reg_m][reg_n] = 0.0f;
            }

            // main loop over tiles along K
            for (int tile_k = 0; tile_k < K; tile_k += BK) {
                while (!gg_try_wait(full[stage], phase)) {}

                // multiply the tile (register_block)
                #pragma unroll
                for (int k = 0; k < BK; ++k) {
                    #pragma unroll
                    for (int reg_m = 0; reg_m < TM; ++reg_m)
                        A_frag[reg_m] = A_shared[stage][k][thread_m + reg_m];
                    #pragma unroll
                    for (int reg_n = 0; reg_n < TN; ++reg_n)
                        B_frag[reg_n] = B_shared[stage][k][thread_n + reg_n];
                    #pragma unroll
                    for (int reg_m = 0; reg_m < TM; ++reg_m) {
                        #pragma unroll
                        for (int reg_n = 0; reg_n < TN; ++reg_n)
                            acc[reg_m][reg_n] =
                                fmaf(A_frag[reg_m], B_frag[reg_n], acc[reg_m][reg_n]);
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
                const int m = tile_m + thread_m + reg_m;
                if (m < M) {
                    #pragma unroll
                    for (int reg_n = 0; reg_n < TN; reg_n += VEC) {
                        const int n = tile_n + thread_n + reg_n;
                        alignas(16) float out[VEC];
                        alignas(16) float old[VEC] = {};
                        if (beta != 0.0f) copy4(old, &C[(long long)m * ldc + n], n, N);
                        for (int e = 0; e < VEC; ++e)
                            out[e] = fmaf(beta, old[e], alpha * acc[reg_m][reg_n + e]);
                        copy4(&C[(long long)m * ldc + n], out, n, N);
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
// CU_TENSOR_MAP_DATA_TYPE_* of cuda.h
constexpr int gg_FLOAT32 = 7;

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
                          const unsigned (&box)[RANK])
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
    // not interleaved (0), not swizzled (0), through L2 128 bytes at a time (2), zeros outside (0)
    const int error = encode(&map, type, RANK, given.address, given.sizes, given.strides,
                             box, steps, 0, 0, 2, 0);
    if (error == 0) kept = {map, tensor};
    return static_cast<cudaError_t>(error);
}
}  // namespace gemm_detail

// Checks the requirements, then launches gemm on the stream.
cudaError_t launch_gemm(int M, int N, int K,
    float alpha, const float *A, int lda, const float *B, int ldb, float beta, float *C, int ldc,
    cudaStream_t stream)
{
    using namespace gemm_detail;
    if (M < 0 || N < 0 || K < 0 || M > 2147483567 || N > 2147483503 || K > 2147483607 || lda < M ||
        ldb < N || ldc < N || lda % 4 != 0 || ldb % 4 != 0 || ldc % 4 != 0)
        return cudaErrorInvalidValue;
    if (reinterpret_cast<size_t>(A) % 16 != 0 || reinterpret_cast<size_t>(B) % 16 != 0 ||
        reinterpret_cast<size_t>(C) % 16 != 0)
        return cudaErrorMisalignedAddress;
    if (M == 0 || N == 0) return cudaSuccess;
    if (alpha == 0) K = 0;  // as in BLAS
    const long long tiles = ((M - 1) / (BM * CLUSTER_M) + 1LL) * ((N - 1) / (BN * CLUSTER_N) +
        1LL) * CLUSTER;
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
    if (error == cudaSuccess)
        error = gg_encode_map(A_map, gg_FLOAT32, {A, {M, K}, {4LL * lda}}, {BM, BK / CLUSTER_N});
    if (error == cudaSuccess)
        error = gg_encode_map(B_map, gg_FLOAT32, {B, {N, K}, {4LL * ldb}}, {BN, BK / CLUSTER_M});
    if (error != cudaSuccess) return error;
    const long long blocks = tiles < CLUSTER * clusters ? tiles : CLUSTER * clusters;
    gemm<<<static_cast<unsigned>(blocks), THREADS, 0, stream>>>(
        M, N, K, alpha, A_map.map, B_map.map, beta, C, ldc);
    return cudaGetLastError();
}
#endif

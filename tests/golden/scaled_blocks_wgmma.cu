// gemm: C[m, n] = alpha * acc + beta * C[m, n], acc = sum over k of (A[m, k] * SA[k/128, m]) *
// (B[n, k] * SB[n/16, k/128]) (A e4m3, B e5m2, C bf16, accumulators f32)
//
// schedule (defaults left out):
//     gemm            C[m, n] = (A[m, k] * SA[k/128, m]) * (B[n, k] * SB[n/16, k/128])
//     dtype           A=e4m3 B=e5m2 C=bf16
//     target          sm_90a
//     tile            m=64 n=32 k=128
//     cache_shared    A[m, k] B[n, k]
//     warp_tile       m=64 n=32
//     tensor_core     via=wgmma promote=64
//     vectorize       C width=2
//     swizzle         A B
//     double_buffer   A B
//     async_copy      A B via=tma
//     warp_specialize producers=1
// call (extents, leading dimensions: int; scalars: float; tensors: device pointers to unsigned char
// (e4m3 bits) for A, unsigned char (e5m2 bits) for B, unsigned short (bf16 bits) for C, float for
// SA, SB):
//     launch_gemm(M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, SA, ldsa, SB, ldsb, stream)
// launch:
//     ceil(M / 64) * ceil(N / 32) blocks of 256 threads; none if C is empty
//     K = 0 if alpha == 0: as in BLAS, A and B and SA and SB are not read
// tensor maps (cuTensorMapEncodeTiled; the innermost dimension first, strides in bytes):
//     A: UINT8, K x M, strides 1 * lda, box 128 x 64, swizzle 128B
//     B: UINT8, K x N, strides 1 * ldb, box 128 x 32, swizzle 128B
//     SA: FLOAT32, M x K/128, strides 4 * ldsa, box 64 x 1
//     neither interleaved nor otherwise swizzled,
//         L2 promotion 128B, element strides 1, zeros outside
// requires (leading dimensions count elements):
//     lda >= K, ldb >= K, ldc >= N, ldsa >= M
//     ldsb * 128 >= K
//     M <= 2147483567, N <= 2147483599, K <= 2147483375
//     lda % 16 == 0, ldb % 16 == 0, ldc % 2 == 0, ldsa % 4 == 0
//     A, B, SA aligned to 16 bytes
//     C aligned to 4 bytes
//     C overlaps none of A, B, SA, SB

namespace gemm_detail {
// A CUtensorMap, the descriptor of a tensor for TMA; the launcher encodes it.
struct alignas(128) gg_tensor_map { unsigned long long words[16]; };
// cvta.to.shared: the address by which PTX instructions take shared memory.
__device__ __forceinline__ unsigned gg_shared(const void *pointer)
{ return static_cast<unsigned>(__cvta_generic_to_shared(pointer)); }
// Copies 2 contiguous elements in one access.
__device__ __forceinline__ void copy2(unsigned short *target, const unsigned short *source)
{ *reinterpret_cast<unsigned *>(target) = *reinterpret_cast<const unsigned *>(source); }
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
// mbarrier.arrive: one arrival; releases this thread's earlier accesses to the waiters.
__device__ __forceinline__ void gg_arrive(unsigned long long &barrier)
{ asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(gg_shared(&barrier)) : "memory"); }

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
// fence.proxy.async: orders this thread's accesses to shared memory before later TMA accesses.
__device__ __forceinline__ void gg_fence_async()
{ asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// The matrix descriptor of a K-major wgmma operand with the 128-byte swizzle of TMA; groups of 8
// rows are `stride` bytes apart.  A step along k adds its bytes / 16.
__device__ __forceinline__ unsigned long long gg_matrix_128B(const void *first, int stride = 1024)
{ return (gg_shared(first) & 0x3ffff) >> 4 | 1ULL << 16 |
         static_cast<unsigned long long>(stride >> 4) << 32 | 1ULL << 62; }
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

// wgmma.mma_async: c, d = a * b + (accumulate ? c, d : 0) for a warpgroup's 64 x 32 tile; operands
// of e4m3 and e5m2 in shared memory, both K-major.  A thread has two adjacent accumulators in every
// 8 columns, in row `c` and, 8 rows below, in row `d`.
__device__ __forceinline__ void gg_wgmma_m64n32k32_e4m3_e5m2(
    float *c, float *d, unsigned long long a, unsigned long long b, int accumulate)
{
    asm volatile("{\n.reg .pred more;\nsetp.ne.b32 more, %18, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n32k32.f32.e4m3.e5m2 {"
        "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, "
        "%16, %17, more, 1, 1;\n}" :
    "+f"(c[0]),"+f"(c[1]),"+f"(d[0]),"+f"(d[1]),"+f"(c[2]),"+f"(c[3]),"+f"(d[2]),"+f"(d[3]),
    "+f"(c[4]),"+f"(c[5]),"+f"(d[4]),"+f"(d[5]),"+f"(c[6]),"+f"(c[7]),"+f"(d[6]),"+f"(d[7])
        : "l"(a), "l"(b), "r"(accumulate));
}

// ---- kernel ----
constexpr int BM = 64, BN = 32, BK = 128;  // threadblock tile of C, and its step along K
constexpr int WM = 16, WN = 32;  // warp tile
constexpr int TM = 2, TN = 8;  // micro-tile of a thread
constexpr int PN = 2;  // in vectors of this many adjacent elements
constexpr int LM = WM / TM, LN = WN / TN;  // threads along each side of a warp
constexpr int IK = 32;  // step of one instruction
constexpr int VEC = 2;  // elements of a vector access
constexpr int PROMOTE = 64;  // promotion interval, in terms
constexpr int WARPGROUP = 128;  // threads of a warpgroup
constexpr int CONSUMERS = (BM / WM) * (BN / WN) * 32;  // threads of all consumers
constexpr int PRODUCER_REGISTERS = 24, CONSUMER_REGISTERS = 232;  // registers of a thread
constexpr int THREADS = CONSUMERS + WARPGROUP;
constexpr int STAGE_BYTES = BM * BK + BN * BK + BM * 4;  // bytes of the tiles in a stage
static_assert(WM % TM == 0 && WN % TN == 0, "the micro-tiles fill the tile");
static_assert(LM * LN == 32, "a warp's threads fill its tile");
static_assert(BK % IK == 0, "the steps fill the tile");
static_assert(THREADS <= 1024, "a block has at most 1024 threads");

// copies the elements before `stop` of a vector whose first index is `first` (vectorize)
__device__ __forceinline__ void copy2(unsigned short *target, const unsigned short *source,
    int first, int stop)
{
    if (first + VEC - 1 < stop) return copy2(target, source);
    for (int e = 0; e < VEC; ++e) if (first + e < stop) target[e] = source[e];
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
gemm(int M, int N, int K,
    float alpha, const __grid_constant__ gg_tensor_map A, const __grid_constant__ gg_tensor_map B,
    float beta, unsigned short *__restrict__ C, int ldc, const __grid_constant__ gg_tensor_map SA,
    const float *__restrict__ SB, int ldsb)
{
    // tiles in shared memory (cache_shared; swizzle; double_buffer; async_copy)
    __shared__ alignas(1024) unsigned char A_shared[2][BM][BK];
    __shared__ alignas(1024) unsigned char B_shared[2][BN][BK];
    __shared__ alignas(128) float SA_shared[2][1][BM];
    static_assert(sizeof(A_shared) + sizeof(B_shared) + sizeof(SA_shared) <= 48 * 1024,
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
                gg_load_box_2d(A_shared[stage], A, full[stage], tile_k, tile_m);
                gg_load_box_2d(B_shared[stage], B, full[stage], tile_k, tile_n);
                gg_load_box_2d(SA_shared[stage], SA, full[stage], tile_m, tile_k / 128);
                if (++stage == 2) { stage = 0; phase ^= 1; }
            }
        }
    } else {
        // the consumers: multiply full stages, then run the epilogue (warp_specialize)
        gg_more_registers<CONSUMER_REGISTERS>();

        // the thread's position in the tile (tile; warp_tile; tensor_core)
        const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
        const int thread_m = (warp % (BM / WM)) * WM + lane / LN;
        const int thread_n = (warp / (BM / WM)) * WN + (lane % LN) * PN;
        const int first_warp = gg_uniform(tid / WARPGROUP) * (WARPGROUP / 32);
        const int warpgroup_m = (first_warp % (BM / WM)) * WM;
        const int warpgroup_n = (first_warp / (BM / WM)) * WN;

        // registers: accumulators
        float part[TM][TN];
        float acc[TM][TN] = {};
        int stage = 0, phase = 0;

        // main loop over tiles along K
        for (int tile_k = 0; tile_k < K; tile_k += BK) {
            while (!gg_try_wait(full[stage], phase)) {}

            // the scales of this step
            float SA_frag[TM];
            #pragma unroll
            for (int reg_m = 0; reg_m < TM; ++reg_m)
                SA_frag[reg_m] = SA_shared[stage][0][thread_m + reg_m * LM];
            float SB_frag[2];
            #pragma unroll
            for (int reg_n = 0; reg_n < 2; ++reg_n) {
                const int n = tile_n + thread_n + reg_n * 4 * LN;
                SB_frag[reg_n] = n < N ? SB[(long long)(n / 16) * ldsb + tile_k / 128] : 0.0f;
            }

            // multiply the tile (tensor_core)
            const auto A_matrix = gg_matrix_128B(A_shared[stage][warpgroup_m], 1024);
            const auto B_matrix = gg_matrix_128B(B_shared[stage][warpgroup_n], 1024);
            gg_wgmma_fence();
            #pragma unroll
            for (int k = 0; k < BK; k += IK) {
                gg_wgmma_m64n32k32_e4m3_e5m2(part[0], part[1], A_matrix + k / 16,
                    B_matrix + k / 16, k % PROMOTE > 0);
                if ((k + IK) % PROMOTE == 0) {
                    // scale the partial accumulators, and promote them to f32
                    gg_wgmma_commit();
                    gg_wgmma_end(part);
                    #pragma unroll
                    for (int reg_m = 0; reg_m < TM; ++reg_m) {
                        #pragma unroll
                        for (int reg_n = 0; reg_n < TN; ++reg_n) {
                            acc[reg_m][reg_n] = fmaf(part[reg_m][reg_n],
                                SA_frag[reg_m] * SB_frag[reg_n / 4], acc[reg_m][reg_n]);
                        }
                    }
                    gg_wgmma_fence();
                }
            }

            // release the stage of this step
            gg_fence_async();
            __syncwarp();
            if (threadIdx.x % 32 == 0) gg_arrive(empty[stage]);
            if (++stage == 2) { stage = 0; phase ^= 1; }
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

// ---- end of kernel ----
}  // namespace gemm_detail

#ifndef __CUDACC_RTC__
namespace gemm_detail {
// CU_TENSOR_MAP_DATA_TYPE_* and CU_TENSOR_MAP_SWIZZLE_* of cuda.h
constexpr int gg_UINT8 = 0, gg_FLOAT32 = 7, gg_SWIZZLE_128B = 3, gg_SWIZZLE_NONE = 0;

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
    float alpha, const unsigned char *A, int lda, const unsigned char *B, int ldb, float beta,
    unsigned short *C, int ldc, const float *SA, int ldsa, const float *SB, int ldsb,
    cudaStream_t stream)
{
    using namespace gemm_detail;
    if (M < 0 || N < 0 || K < 0 || M > 2147483567 || N > 2147483599 || K > 2147483375 || lda < K ||
        ldb < K || ldc < N || ldsa < M || (long long)ldsb * 128 < K || lda % 16 != 0 ||
        ldb % 16 != 0 || ldc % 2 != 0 || ldsa % 4 != 0)
        return cudaErrorInvalidValue;
    if (reinterpret_cast<size_t>(A) % 16 != 0 || reinterpret_cast<size_t>(B) % 16 != 0 ||
        reinterpret_cast<size_t>(C) % 4 != 0 || reinterpret_cast<size_t>(SA) % 16 != 0)
        return cudaErrorMisalignedAddress;
    if (M == 0 || N == 0) return cudaSuccess;
    if (alpha == 0) K = 0;  // as in BLAS
    const long long blocks = ((M - 1) / BM + 1LL) * ((N - 1) / BN + 1LL);
    if (blocks > 2147483647) return cudaErrorInvalidConfiguration;
    // this thread's last launch: its maps
    static thread_local gg_kept_map<2> A_map, B_map, SA_map;
    cudaError_t error =
        gg_encode_map(A_map, gg_UINT8, {A, {K, M}, {1LL * lda}}, {BK, BM}, gg_SWIZZLE_128B);
    if (error == cudaSuccess)
        error = gg_encode_map(B_map, gg_UINT8, {B, {K, N}, {1LL * ldb}}, {BK, BN}, gg_SWIZZLE_128B);
    if (error == cudaSuccess) error = gg_encode_map(SA_map, gg_FLOAT32,
        {SA, {M, K / 128 + (K % 128 > 0)}, {4LL * ldsa}}, {BM, 1}, gg_SWIZZLE_NONE);
    if (error != cudaSuccess) return error;
    gemm<<<static_cast<unsigned>(blocks), THREADS, 0, stream>>>(
        M, N, K, alpha, A_map.map, B_map.map, beta, C, ldc, SA_map.map, SB, ldsb);
    return cudaGetLastError();
}
#endif

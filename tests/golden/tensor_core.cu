// gemm: C[m, n] = alpha * acc + beta * C[m, n], acc = sum over k of A[m, k] * B[k, n] (A f16, B
// f16, C f16, accumulators f32)
//
// schedule (defaults left out):
//     gemm            C[m, n] = A[m, k] * B[k, n]
//     dtype           A=f16 B=f16 C=f16
//     tile            m=128 n=256 k=32
//     cache_shared    A[m, k] B[k, n]
//     warp_tile       m=64 n=64
//     tensor_core     via=wmma
//     vectorize       A.global B.global C width=8
//     pad             A B by=8
//     double_buffer   A B stages=3
//     double_buffer   A.register B.register
//     async_copy      A B via=cp_async
//     raster          group=8
// call (extents, leading dimensions: int; scalars: float; tensors: device pointers to unsigned
// short (f16 bits)):
//     launch_gemm(M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, stream)
// launch:
//     ceil(M / 128) * ceil(N / 256) blocks of 256 threads; none if C is empty
//     115200 bytes of dynamic shared memory a block
//     K = 0 if alpha == 0: as in BLAS, A and B are not read
// requires (leading dimensions count elements):
//     lda >= K, ldb >= N, ldc >= N
//     M <= 2147483503, N <= 2147483375, K <= 2147483535
//     lda % 8 == 0, ldb % 8 == 0, ldc % 8 == 0
//     A, B, C aligned to 16 bytes
//     C overlaps none of A, B

namespace gemm_detail {
// Copies 4 contiguous elements in one access.
__device__ __forceinline__ void copy4(float *target, const float *source)
{ *reinterpret_cast<float4 *>(target) = *reinterpret_cast<const float4 *>(source); }
// Copies 8 contiguous elements in one access.
__device__ __forceinline__ void copy8(unsigned short *target, const unsigned short *source)
{ *reinterpret_cast<uint4 *>(target) = *reinterpret_cast<const uint4 *>(source); }
// cvt.f32.f16: f16 bits to float, exactly.
__device__ __forceinline__ float gg_from_f16(unsigned short bits)
{ float number; asm("cvt.f32.f16 %0, %1;" : "=f"(number) : "h"(bits)); return number; }
// cvt.rn.f16.f32: float to f16 bits, rounded to nearest even.
__device__ __forceinline__ unsigned short gg_to_f16(float number)
{ unsigned short bits; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(number)); return bits; }

// cp.async.cg: asynchronous copy of 16 bytes from global to shared memory: `valid` bytes of
// the source, then zeros.
__device__ __forceinline__ void gg_copy_async_16(
    unsigned short *target, const unsigned short *source, int valid)
{
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(target));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(to), "l"(source), "r"(valid) : "memory");
}
// cp.async.commit_group: makes this thread's uncommitted cp.async copies one group.
__device__ __forceinline__ void gg_commit_group()
{ asm volatile("cp.async.commit_group;" ::: "memory"); }
// cp.async.wait_group: waits until at most the `pending` newest of this thread's groups are
// outstanding.
template <int pending> __device__ __forceinline__ void gg_wait_group()
{ asm volatile("cp.async.wait_group %0;" :: "n"(pending) : "memory"); }

// wmma.load.a: loads a warp's 16 x 16 fragment of A from shared memory; its rows begin
// `pitch` elements apart.
__device__ __forceinline__ void gg_wmma_load_a_row_f16(
    unsigned (&fragment)[8], const unsigned short *source, int pitch)
{
    const unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(source));
    asm volatile("wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7}, [%8], %9;"
                 : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3]),
                   "=r"(fragment[4]), "=r"(fragment[5]), "=r"(fragment[6]), "=r"(fragment[7])
                 : "r"(from), "r"(pitch) : "memory");
}

// wmma.load.b: loads a warp's 16 x 16 fragment of B from shared memory; its rows begin
// `pitch` elements apart.
__device__ __forceinline__ void gg_wmma_load_b_row_f16(
    unsigned (&fragment)[8], const unsigned short *source, int pitch)
{
    const unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(source));
    asm volatile("wmma.load.b.sync.aligned.row.m16n16k16.shared.f16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7}, [%8], %9;"
                 : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3]),
                   "=r"(fragment[4]), "=r"(fragment[5]), "=r"(fragment[6]), "=r"(fragment[7])
                 : "r"(from), "r"(pitch) : "memory");
}

// wmma.mma: acc += a * b for a warp's 16 x 16 fragments, loaded as rows of A and rows of B.
__device__ __forceinline__ void gg_wmma_multiply_row_row_f16(
    float (&sum)[8], const unsigned (&a)[8], const unsigned (&b)[8])
{
    asm volatile("wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7}, "
                 "{%8, %9, %10, %11, %12, %13, %14, %15}, "
                 "{%16, %17, %18, %19, %20, %21, %22, %23}, "
                 "{%0, %1, %2, %3, %4, %5, %6, %7};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]),
                   "+f"(sum[4]), "+f"(sum[5]), "+f"(sum[6]), "+f"(sum[7])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]),
                   "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7]),
                   "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]),
                   "r"(b[4]), "r"(b[5]), "r"(b[6]), "r"(b[7]));
}

// wmma.store.d: stores a warp's 16 x 16 accumulator fragment to shared memory; its rows are
// `pitch` elements apart.
__device__ __forceinline__ void gg_wmma_store_row(
    float *target, const float (&sum)[8], int pitch)
{
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(target));
    asm volatile("wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [%0], "
                 "{%2, %3, %4, %5, %6, %7, %8, %9}, %1;"
                 :: "r"(to), "r"(pitch),
                    "f"(sum[0]), "f"(sum[1]), "f"(sum[2]), "f"(sum[3]),
                    "f"(sum[4]), "f"(sum[5]), "f"(sum[6]), "f"(sum[7])
                 : "memory");
}

// ---- kernel ----
constexpr int BM = 128, BN = 256, BK = 32;  // threadblock tile of C, and its step along K
constexpr int WM = 64, WN = 64;  // warp tile
constexpr int IM = 16, IN = 16, IK = 16;  // tile of one instruction
constexpr int FM = WM / IM, FN = WN / IN;  // fragments of a warp
constexpr int VEC = 8;  // elements of a vector access
constexpr int A_PAD = 8, B_PAD = 8, acc_PAD = 8;  // padding elements of each row
constexpr int STAGES = 3;  // tiles in shared memory
constexpr int GROUP = 8;  // block rows in a group
constexpr int THREADS = (BM / WM) * (BN / WN) * 32;
// rows between a thread's copies
constexpr int A_STEP = THREADS / (BK / VEC), B_STEP = THREADS / (BN / VEC);
constexpr int A_VECTORS = BM / A_STEP, B_VECTORS = BK / B_STEP;  // a thread's copies of a tile
constexpr int SHARED_BYTES = STAGES * BM * (BK + A_PAD) * 2 + STAGES * BK * (BN + B_PAD) * 2 +
    ((BM / WM) * IM) * (BN + acc_PAD) * 4;
static_assert(WM % IM == 0 && WN % IN == 0, "the fragments fill a warp's tile");
static_assert(BK % IK == 0, "the steps fill the tile");
static_assert(THREADS % (BK / VEC) == 0 && A_VECTORS * A_STEP == BM,
    "the threads copy whole tiles of A");
static_assert(THREADS % (BN / VEC) == 0 && B_VECTORS * B_STEP == BK,
    "the threads copy whole tiles of B");
static_assert(THREADS <= 1024, "a block has at most 1024 threads");
static_assert(SHARED_BYTES <= 227 * 1024, "a block has at most 227 KiB");

// starts this thread's copies of a tile of A; zeros outside the matrix (cache_shared; vectorize;
// async_copy)
__device__ __forceinline__ void copy_A_tile(unsigned short (&A_shared)[BM][BK + A_PAD],
    const unsigned short *A, int lda, int M, int K, int tile_m, int tile_k, int A_m, int A_k)
{
    #pragma unroll
    for (int vector = 0; vector < A_VECTORS; ++vector) {
        const int m = tile_m + A_m + vector * A_STEP, k = tile_k + A_k;
        const int valid = m < M && k < K ? (K - k < VEC ? K - k : VEC) : 0;
        gg_copy_async_16(&A_shared[A_m + vector * A_STEP][A_k], &A[(long long)m * lda + k],
            valid * sizeof(unsigned short));
    }
}

// starts this thread's copies of a tile of B; zeros outside the matrix (cache_shared; vectorize;
// async_copy)
__device__ __forceinline__ void copy_B_tile(unsigned short (&B_shared)[BK][BN + B_PAD],
    const unsigned short *B, int ldb, int K, int N, int tile_k, int tile_n, int B_k, int B_n)
{
    #pragma unroll
    for (int vector = 0; vector < B_VECTORS; ++vector) {
        const int k = tile_k + B_k + vector * B_STEP, n = tile_n + B_n;
        const int valid = k < K && n < N ? (N - n < VEC ? N - n : VEC) : 0;
        gg_copy_async_16(&B_shared[B_k + vector * B_STEP][B_n], &B[(long long)k * ldb + n],
            valid * sizeof(unsigned short));
    }
}

// copies the elements before `stop` of a vector whose first index is `first` (vectorize)
__device__ __forceinline__ void copy8(unsigned short *target, const unsigned short *source,
    int first, int stop)
{
    if (first + VEC - 1 < stop) return copy8(target, source);
    for (int e = 0; e < VEC; ++e) if (first + e < stop) target[e] = source[e];
}

extern "C" __global__ void __launch_bounds__(THREADS)
gemm(int M, int N, int K,
    float alpha, const unsigned short *__restrict__ A, int lda,
    const unsigned short *__restrict__ B, int ldb, float beta, unsigned short *__restrict__ C,
    int ldc)
{
    // tiles in shared memory (cache_shared; pad; double_buffer A B stages=3; tensor_core)
    alignas(32) extern __shared__ unsigned char shared_memory_32[];
    auto *const A_shared = reinterpret_cast<unsigned short(*)[BM][BK + A_PAD]>(shared_memory_32);
    auto *const B_shared = reinterpret_cast<unsigned short(*)[BK][BN + B_PAD]>(A_shared + STAGES);
    auto *const acc_shared = reinterpret_cast<float(*)[BN + acc_PAD]>(B_shared + STAGES);

    // the block's tile of C (tile; raster)
    const int blocks_m = (M - 1) / BM + 1, blocks_n = (N - 1) / BN + 1;
    const int full_group = blocks_m < GROUP ? blocks_m : GROUP;
    const int group = (blockIdx.x / (full_group * blocks_n)) * full_group;
    const int group_rows = blocks_m - group < full_group ? blocks_m - group : full_group;
    const int tile_in_group = blockIdx.x % (full_group * blocks_n);
    const int tile_m = (group + tile_in_group % group_rows) * BM;
    const int tile_n = (tile_in_group / group_rows) * BN;

    // the warp's position in it (tile; warp_tile; tensor_core)
    const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    const int warp_m = (warp / (BN / WN)) * WM, warp_n = (warp % (BN / WN)) * WN;

    // first vector of A and B that this thread copies
    const int A_m = tid / (BK / VEC), A_k = (tid % (BK / VEC)) * VEC;
    const int B_k = tid / (BN / VEC), B_n = (tid % (BN / VEC)) * VEC;

    // registers: operand fragments, accumulators
    unsigned A_frag[2][FM][8];
    unsigned B_frag[2][FN][8];
    float acc[FM][FN][8] = {};

    // copy the first tiles (async_copy)
    for (int ahead = 0; ahead < STAGES - 1; ++ahead) {
        copy_A_tile(A_shared[ahead], A, lda, M, K, tile_m, ahead * BK, A_m, A_k);
        copy_B_tile(B_shared[ahead], B, ldb, K, N, ahead * BK, tile_n, B_k, B_n);
        gg_commit_group();
    }
    int stage = 0;
    gg_wait_group<STAGES - 2>();
    __syncthreads();

    // load the first fragments (double_buffer A.register B.register)
    #pragma unroll
    for (int frag_m = 0; frag_m < FM; ++frag_m) {
        gg_wmma_load_a_row_f16(A_frag[0][frag_m], &A_shared[0][warp_m + frag_m * IM][0],
            BK + A_PAD);
    }
    #pragma unroll
    for (int frag_n = 0; frag_n < FN; ++frag_n) {
        gg_wmma_load_b_row_f16(B_frag[0][frag_n], &B_shared[0][0][warp_n + frag_n * IN],
            BN + B_PAD);
    }

    // main loop over tiles along K
    for (int tile_k = 0; tile_k < K; tile_k += BK) {
        const int next_k = tile_k + (STAGES - 1) * BK;
        const int write_stage = stage > 0 ? stage - 1 : STAGES - 1;

        // copy a tile ahead (async_copy)
        copy_A_tile(A_shared[write_stage], A, lda, M, K, tile_m, next_k, A_m, A_k);
        copy_B_tile(B_shared[write_stage], B, ldb, K, N, next_k, tile_n, B_k, B_n);
        gg_commit_group();

        // multiply the tile (tensor_core)
        #pragma unroll
        for (int k = 0; k < BK; k += IK) {
            if (k + IK < BK) {
                #pragma unroll
                for (int frag_m = 0; frag_m < FM; ++frag_m) {
                    gg_wmma_load_a_row_f16(A_frag[(k / IK + 1) % 2][frag_m],
                        &A_shared[stage][warp_m + frag_m * IM][k + IK], BK + A_PAD);
                }
                #pragma unroll
                for (int frag_n = 0; frag_n < FN; ++frag_n) {
                    gg_wmma_load_b_row_f16(B_frag[(k / IK + 1) % 2][frag_n],
                        &B_shared[stage][k + IK][warp_n + frag_n * IN], BN + B_PAD);
                }
            } else {
                // wait for the next tile, then read ahead into it
                // (double_buffer A.register B.register)
                stage = stage + 1 < STAGES ? stage + 1 : 0;
                gg_wait_group<STAGES - 2>();
                __syncthreads();
                #pragma unroll
                for (int frag_m = 0; frag_m < FM; ++frag_m) {
                    gg_wmma_load_a_row_f16(A_frag[(k / IK + 1) % 2][frag_m],
                        &A_shared[stage][warp_m + frag_m * IM][0], BK + A_PAD);
                }
                #pragma unroll
                for (int frag_n = 0; frag_n < FN; ++frag_n) {
                    gg_wmma_load_b_row_f16(B_frag[(k / IK + 1) % 2][frag_n],
                        &B_shared[stage][0][warp_n + frag_n * IN], BN + B_PAD);
                }
            }
            #pragma unroll
            for (int frag_m = 0; frag_m < FM; ++frag_m) {
                #pragma unroll
                for (int frag_n = 0; frag_n < FN; ++frag_n) {
                    gg_wmma_multiply_row_row_f16(acc[frag_m][frag_n], A_frag[k / IK % 2][frag_m],
                        B_frag[k / IK % 2][frag_n]);
                }
            }
        }
    }

    // drain the outstanding cp.async groups
    gg_wait_group<0>();

    // the epilogue (vectorize)
    const int slice_m = (warp_m / WM) * IM;
    #pragma unroll
    for (int frag_m = 0; frag_m < FM; ++frag_m) {
        // stage one row of accumulator fragments in shared memory (tensor_core)
        #pragma unroll
        for (int frag_n = 0; frag_n < FN; ++frag_n) {
            gg_wmma_store_row(&acc_shared[slice_m][warp_n + frag_n * IN], acc[frag_m][frag_n],
                BN + acc_PAD);
        }
        __syncwarp();

        // read it back, one contiguous vector per lane
        #pragma unroll
        for (int vector = 0; vector < IM * (WN / VEC) / 32; ++vector) {
            const int slot = vector * 32 + lane;
            const int thread_m = slot / (WN / VEC), thread_n = (slot % (WN / VEC)) * VEC;
            const int m = tile_m + warp_m + frag_m * IM + thread_m;
            if (m < M) {
                const int n = tile_n + warp_n + thread_n;
                alignas(16) float acc_values[VEC];
                copy4(acc_values, &acc_shared[slice_m + thread_m][warp_n + thread_n]);
                copy4(&acc_values[4], &acc_shared[slice_m + thread_m][warp_n + thread_n + 4]);
                alignas(16) unsigned short out[VEC];
                alignas(16) unsigned short old[VEC] = {};
                if (beta != 0.0f) copy8(old, &C[(long long)m * ldc + n], n, N);
                for (int e = 0; e < VEC; ++e)
                    out[e] = gg_to_f16(fmaf(beta, gg_from_f16(old[e]), alpha * acc_values[e]));
                copy8(&C[(long long)m * ldc + n], out, n, N);
            }
        }
        __syncwarp();
    }
}

// ---- end of kernel ----
}  // namespace gemm_detail

#ifndef __CUDACC_RTC__
// Checks the requirements, then launches gemm on the stream.
cudaError_t launch_gemm(int M, int N, int K,
    float alpha, const unsigned short *A, int lda, const unsigned short *B, int ldb, float beta,
    unsigned short *C, int ldc, cudaStream_t stream)
{
    using namespace gemm_detail;
    if (M < 0 || N < 0 || K < 0 || M > 2147483503 || N > 2147483375 || K > 2147483535 || lda < K ||
        ldb < N || ldc < N || lda % 8 != 0 || ldb % 8 != 0 || ldc % 8 != 0)
        return cudaErrorInvalidValue;
    if (reinterpret_cast<size_t>(A) % 16 != 0 || reinterpret_cast<size_t>(B) % 16 != 0 ||
        reinterpret_cast<size_t>(C) % 16 != 0)
        return cudaErrorMisalignedAddress;
    if (M == 0 || N == 0) return cudaSuccess;
    if (alpha == 0) K = 0;  // as in BLAS
    const long long blocks = ((M - 1) / BM + 1LL) * ((N - 1) / BN + 1LL);
    if (blocks > 2147483647) return cudaErrorInvalidConfiguration;
    // this thread's last launch: its device
    static thread_local int ready = -1;
    int device = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess && device != ready) {
        ready = -1;
        error =
            cudaFuncSetAttribute(gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
        if (error == cudaSuccess) ready = device;
    }
    if (error != cudaSuccess) return error;
    gemm<<<static_cast<unsigned>(blocks), THREADS, SHARED_BYTES, stream>>>(
        M, N, K, alpha, A, lda, B, ldb, beta, C, ldc);
    return cudaGetLastError();
}
#endif

// C = A: TMA writes tiles of a block's rows, while the next one is read.
// Parameters: M, N, A[m, n], lda, C[m, n] (a tensor map of boxes of 32 x 32).  128 threads.
// ---- kernel ----
constexpr int BM = 32, BN = 32, STAGES = 2, THREADS = 128;

extern "C" __global__ void __launch_bounds__(THREADS)
copied(int M, int N, const float *__restrict__ A, int lda, const __grid_constant__ gg_tensor_map C)
{
    __shared__ alignas(128) float C_shared[STAGES][BM][BN];

    const int tile_m = blockIdx.x * BM, steps = (N + BN - 1) / BN;
    for (int step = 0; step < steps; ++step) {
        const int stage = step % STAGES;
        if (threadIdx.x == 0) gg_await_boxes<STAGES - 1>();
        __syncthreads();
        for (int i = threadIdx.x; i < BM * BN; i += THREADS) {
            const int m = tile_m + i / BN, n = step * BN + i % BN;
            C_shared[stage][i / BN][i % BN] = m < M && n < N ? A[(long long)m * lda + n] : 0.0f;
        }
        gg_fence_async();
        __syncthreads();
        if (threadIdx.x == 0) {
            gg_store_box_2d(C, C_shared[stage], step * BN, tile_m);
            gg_commit_boxes();
        }
    }
    if (threadIdx.x == 0) gg_await_boxes<0>();
}
// ---- end of kernel ----

// C = A: TMA reads tiles of a block's rows, two of them ahead.
// Parameters: M, N, A[m, n] (a tensor map of boxes of 32 x 32), C[m, n], ldc.  128 threads.
// ---- kernel ----
constexpr int BM = 32, BN = 32, STAGES = 2, THREADS = 128;

extern "C" __global__ void __launch_bounds__(THREADS)
copied(int M, int N, const __grid_constant__ gg_tensor_map A, float *__restrict__ C, int ldc)
{
    __shared__ alignas(128) float A_shared[STAGES][BM][BN];
    __shared__ alignas(8) unsigned long long full[STAGES];

    const int tile_m = blockIdx.x * BM, steps = (N + BN - 1) / BN;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) gg_init_barrier(full[stage], 1);
        gg_fence_barrier_init();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int step = 0; step < min(STAGES, steps); ++step) {
            gg_expect_bytes(full[step], BM * BN * 4);
            gg_load_box_2d(A_shared[step], A, full[step], step * BN, tile_m);
        }
    }
    for (int step = 0; step < steps; ++step) {
        const int stage = step % STAGES;
        while (!gg_try_wait(full[stage], step / STAGES % 2)) {}
        for (int i = threadIdx.x; i < BM * BN; i += THREADS) {
            const int m = tile_m + i / BN, n = step * BN + i % BN;
            if (m < M && n < N) C[(long long)m * ldc + n] = A_shared[stage][i / BN][i % BN];
        }
        gg_fence_async();
        __syncthreads();
        const int ahead = step + STAGES;
        if (threadIdx.x == 0 && ahead < steps) {
            gg_expect_bytes(full[stage], BM * BN * 4);
            gg_load_box_2d(A_shared[stage], A, full[stage], ahead * BN, tile_m);
        }
    }
}
// ---- end of kernel ----

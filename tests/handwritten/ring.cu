// C = A * B in tiles of 32 x 32: a warpgroup has tiles of A and B copied into a ring of stages, and
// another one multiplies them.  A stage is full when its tiles have landed, and empty when all that
// read it have.
// Parameters: M, N, K, A[k, m] and B[k, n] (tensor maps of boxes of 32 x 8), C[m, n], ldc.
// 256 threads.
// ---- kernel ----
constexpr int BM = 32, BN = 32, BK = 8, STAGES = 3, CONSUMERS = 128, THREADS = 128 + CONSUMERS;
constexpr int ROWS = BM * BN / CONSUMERS;

extern "C" __global__ void __launch_bounds__(THREADS, 2)
ring(int M, int N, int K, const __grid_constant__ gg_tensor_map A,
     const __grid_constant__ gg_tensor_map B, float *__restrict__ C, int ldc)
{
    __shared__ alignas(128) float A_shared[STAGES][BK][BM];
    __shared__ alignas(128) float B_shared[STAGES][BK][BN];
    __shared__ alignas(8) unsigned long long full[STAGES];
    __shared__ alignas(8) unsigned long long empty[STAGES];

    const int blocks_n = (N + BN - 1) / BN;
    const int tile_m = blockIdx.x / blocks_n * BM, tile_n = blockIdx.x % blocks_n * BN;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            gg_init_barrier(full[stage], 1);
            gg_init_barrier(empty[stage], CONSUMERS);
        }
        gg_fence_barrier_init();
    }
    __syncthreads();

    if (threadIdx.x < 128) {
        gg_fewer_registers<40>();
        if (threadIdx.x == 0) {
            int stage = 0, phase = 0;
            for (int tile_k = 0; tile_k < K; tile_k += BK) {
                while (!gg_try_wait(empty[stage], phase ^ 1)) {}
                gg_expect_bytes(full[stage], (BM + BN) * BK * 4);
                gg_load_box_2d(A_shared[stage], A, full[stage], tile_m, tile_k);
                gg_load_box_2d(B_shared[stage], B, full[stage], tile_n, tile_k);
                if (++stage == STAGES) {
                    stage = 0;
                    phase ^= 1;
                }
            }
        }
    } else {
        gg_more_registers<208>();
        const int thread = threadIdx.x - 128, n = tile_n + thread % BN;
        const int first = thread / BN * ROWS;
        float acc[ROWS];
        for (int i = 0; i < ROWS; ++i) acc[i] = 0.0f;
        int stage = 0, phase = 0;
        for (int tile_k = 0; tile_k < K; tile_k += BK) {
            while (!gg_try_wait(full[stage], phase)) {}
            for (int k = 0; k < BK; ++k) {
                for (int i = 0; i < ROWS; ++i) {
                    acc[i] = fmaf(A_shared[stage][k][first + i], B_shared[stage][k][thread % BN], acc[i]);
                }
            }
            gg_fence_async();
            gg_arrive(empty[stage]);
            if (++stage == STAGES) {
                stage = 0;
                phase ^= 1;
            }
        }
        for (int i = 0; i < ROWS; ++i) {
            const int m = tile_m + first + i;
            if (m < M && n < N) C[(long long)m * ldc + n] = acc[i];
        }
    }
}
// ---- end of kernel ----

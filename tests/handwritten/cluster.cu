// C = A * B in tiles of 32 x 32, in clusters of CLUSTER_M x CLUSTER_N blocks: those side by side along n
// have the same tile of A, those along m the same tile of B.  Each block has its slice of a tile copied
// to all blocks that share it.  A stage is full when the slices of all have landed, and empty when all
// blocks have read it.
// Parameters: M, N, K, A[k, m] and B[k, n] (tensor maps of boxes of 32 x 8 / CLUSTER_N and of
// 32 x 8 / CLUSTER_M), C[m, n], ldc.  96 threads.
// ---- kernel ----
constexpr int BM = 32, BN = 32, BK = 8, STAGES = 3, WARPS = 2, THREADS = 32 + 32 * WARPS;
constexpr int CLUSTER_M = 2, CLUSTER_N = 1, CLUSTER = CLUSTER_M * CLUSTER_N;
constexpr int A_ROWS = BK / CLUSTER_N, B_ROWS = BK / CLUSTER_M, ROWS = BM / WARPS;

extern "C" __global__ void __cluster_dims__(CLUSTER) __launch_bounds__(THREADS)
cluster(int M, int N, int K, const __grid_constant__ gg_tensor_map A,
        const __grid_constant__ gg_tensor_map B, float *__restrict__ C, int ldc)
{
    __shared__ alignas(128) float A_shared[STAGES][BK][BM];
    __shared__ alignas(128) float B_shared[STAGES][BK][BN];
    __shared__ alignas(8) unsigned long long full[STAGES];
    __shared__ alignas(8) unsigned long long empty[STAGES];

    const int clusters_n = (N + CLUSTER_N * BN - 1) / (CLUSTER_N * BN);
    const int number = blockIdx.x / CLUSTER;
    const int rank = gg_cluster_rank(), rank_m = rank / CLUSTER_N, rank_n = rank % CLUSTER_N;
    const int tile_m = (number / clusters_n * CLUSTER_M + rank_m) * BM;
    const int tile_n = (number % clusters_n * CLUSTER_N + rank_n) * BN;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            gg_init_barrier(full[stage], 1);
            gg_init_barrier(empty[stage], CLUSTER * WARPS);
        }
        gg_fence_barrier_init();
    }
    gg_sync_cluster();

    if (threadIdx.x < 32) {
        if (threadIdx.x == 0) {
            const unsigned row = ((1u << CLUSTER_N) - 1) << rank_m * CLUSTER_N;
            unsigned column = 0;
            for (int m = 0; m < CLUSTER_M; ++m) column |= 1u << (m * CLUSTER_N + rank_n);
            int stage = 0, phase = 0;
            for (int tile_k = 0; tile_k < K; tile_k += BK) {
                while (!gg_try_wait(empty[stage], phase ^ 1)) {}
                gg_expect_bytes(full[stage], (BM + BN) * BK * 4);
                const int a_k = rank_n * A_ROWS, b_k = rank_m * B_ROWS;
                gg_multicast_box_2d(A_shared[stage][a_k], A, full[stage], tile_m, tile_k + a_k, row);
                gg_multicast_box_2d(B_shared[stage][b_k], B, full[stage], tile_n, tile_k + b_k, column);
                if (++stage == STAGES) {
                    stage = 0;
                    phase ^= 1;
                }
            }
        }
    } else {
        const int thread = threadIdx.x - 32, n = tile_n + thread % BN, first = thread / BN * ROWS;
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
            __syncwarp();
            if (thread % 32 < CLUSTER) gg_arrive_at(empty[stage], thread % 32);
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
    gg_sync_cluster();
}
// ---- end of kernel ----

// C = A * B^T in tiles of 128 x 32: a warpgroup has tiles of A and B copied into a ring of stages,
// and two others multiply them by wgmma, each its 64 rows of A.  A stage is full when its tiles have
// landed, and empty when all that read it have.  Tiles lie in columns of 16 bytes, not swizzled.
// Parameters: M, N, K, A[m, k] and B[n, k] (tensor maps of boxes of 8 x 128 and of 8 x 32), bf16;
// C[m, n], ldc.
// 384 threads.
// ---- kernel ----
constexpr int BM = 128, BN = 32, BK = 32, STAGES = 3, CONSUMERS = 256, THREADS = 128 + CONSUMERS;

extern "C" __global__ void __launch_bounds__(THREADS, 1)
warpgroups(int M, int N, int K, const __grid_constant__ gg_tensor_map A,
           const __grid_constant__ gg_tensor_map B, float *__restrict__ C, int ldc)
{
    __shared__ alignas(128) unsigned short A_shared[STAGES][BK / 8][BM][8];
    __shared__ alignas(128) unsigned short B_shared[STAGES][BK / 8][BN][8];
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
        if (threadIdx.x == 0) {
            int stage = 0, phase = 0;
            for (int tile_k = 0; tile_k < K; tile_k += BK) {
                while (!gg_try_wait(empty[stage], phase ^ 1)) {}
                gg_expect_bytes(full[stage], (BM + BN) * BK * 2);
                for (int k = 0; k < BK; k += 8) {
                    gg_load_box_2d(A_shared[stage][k / 8], A, full[stage], tile_k + k, tile_m);
                    gg_load_box_2d(B_shared[stage][k / 8], B, full[stage], tile_k + k, tile_n);
                }
                if (++stage == STAGES) {
                    stage = 0;
                    phase ^= 1;
                }
            }
        }
    } else {
        const int consumer = gg_uniform(threadIdx.x / 128) - 1, thread = threadIdx.x % 128;
        float acc[2][BN / 4];
        int stage = 0, phase = 0, before = 0;
        for (int tile_k = 0; tile_k < K; tile_k += BK) {
            while (!gg_try_wait(full[stage], phase)) {}
            const unsigned long long a = gg_matrix_plain(A_shared[stage][0][consumer * 64], BM * 16);
            const unsigned long long b = gg_matrix_plain(B_shared[stage], BN * 16);
            gg_wgmma_fence();
            for (int k = 0; k < BK; k += 16) {
                gg_wgmma_m64n32k16_bf16(acc[0], acc[1], a + k * 2 * BM / 16, b + k * 2 * BN / 16,
                                        tile_k + k > 0);
            }
            gg_wgmma_commit();
            gg_wgmma_wait<1>();
            if (tile_k > 0) gg_arrive(empty[before]);
            before = stage;
            if (++stage == STAGES) {
                stage = 0;
                phase ^= 1;
            }
        }
        gg_wgmma_end(acc);
        if (K == 0) {  // in front of the loop, ptxas would serialize the multiplications
            for (int i = 0; i < BN / 4; ++i) acc[0][i] = acc[1][i] = 0.0f;
        }
        const int row = tile_m + consumer * 64 + thread / 32 * 16 + thread % 32 / 4;
        const int column = tile_n + thread % 4 * 2;
        for (int i = 0; i < 2; ++i) {
            for (int j = 0; j < BN / 4; ++j) {
                const int m = row + i * 8, n = column + j / 2 * 8 + j % 2;
                if (m < M && n < N) C[(long long)m * ldc + n] = acc[i][j];
            }
        }
    }
}
// ---- end of kernel ----

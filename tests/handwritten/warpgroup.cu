// C = A * B^T in tiles of 64 x 32 by one warpgroup: its threads write tiles of A and B to two stages
// of shared memory, in rows of 128 bytes that are swizzled, and wgmma multiplies one while they
// write the other.
// Parameters: M, N, K, A[m, k], lda, B[n, k], ldb, C[m, n], ldc; A and B are bf16.
// 128 threads.
// ---- kernel ----
constexpr int BM = 64, BN = 32, BK = 64, STAGES = 2, THREADS = 128;

extern "C" __global__ void __launch_bounds__(THREADS, 2)
warpgroup(int M, int N, int K, const unsigned short *__restrict__ A, int lda,
          const unsigned short *__restrict__ B, int ldb, float *__restrict__ C, int ldc)
{
    __shared__ alignas(1024) unsigned short A_shared[STAGES][BM][BK];
    __shared__ alignas(1024) unsigned short B_shared[STAGES][BN][BK];

    const int blocks_n = (N + BN - 1) / BN, thread = threadIdx.x;
    const int tile_m = blockIdx.x / blocks_n * BM, tile_n = blockIdx.x % blocks_n * BN;
    float acc[2][BN / 4];
    for (int i = 0; i < BN / 4; ++i) acc[0][i] = acc[1][i] = 0.0f;
    for (int tile_k = 0; tile_k < K; tile_k += BK) {
        const int stage = tile_k / BK % STAGES;
        for (int i = thread; i < BM * BK; i += THREADS) {
            const int m = i / BK, k = i % BK;
            const bool inside = tile_m + m < M && tile_k + k < K;
            A_shared[stage][m][k ^ m % 8 * 8] =
                inside ? A[(long long)(tile_m + m) * lda + tile_k + k] : 0;
        }
        for (int i = thread; i < BN * BK; i += THREADS) {
            const int n = i / BK, k = i % BK;
            const bool inside = tile_n + n < N && tile_k + k < K;
            B_shared[stage][n][k ^ n % 8 * 8] =
                inside ? B[(long long)(tile_n + n) * ldb + tile_k + k] : 0;
        }
        gg_fence_async();
        __syncthreads();
        const unsigned long long a = gg_matrix_128B(A_shared[stage]);
        const unsigned long long b = gg_matrix_128B(B_shared[stage]);
        gg_wgmma_fence();
        for (int k = 0; k < BK; k += 16) {
            gg_wgmma_m64n32k16_bf16(acc[0], acc[1], a + k * 2 / 16, b + k * 2 / 16, tile_k + k > 0);
        }
        gg_wgmma_commit();
        gg_wgmma_wait<1>();
    }
    gg_wgmma_end(acc);
    const int row = tile_m + thread / 32 * 16 + thread % 32 / 4, column = tile_n + thread % 4 * 2;
    for (int i = 0; i < 2; ++i) {
        for (int j = 0; j < BN / 4; ++j) {
            const int m = row + i * 8, n = column + j / 2 * 8 + j % 2;
            if (m < M && n < N) C[(long long)m * ldc + n] = acc[i][j];
        }
    }
}
// ---- end of kernel ----

// C = A^T * B in tiles of 64 x 64 by one warpgroup: its threads write tiles of A and B, which lie
// along m and n, to two stages of shared memory, in swizzle atom columns with rows of SPAN bytes, a row for
// each k, and wgmma multiplies one while they write the other.
// Parameters: M, N, K, A[k, m], lda, B[k, n], ldb, C[m, n], ldc; A and B are bf16.
// 128 threads.
// ---- kernel ----
constexpr int BM = 64, BN = 64, BK = 32, STAGES = 2, THREADS = 128;
constexpr int SPAN = 64, W = SPAN / 2;  // bytes and elements of a row of an atom column

extern "C" __global__ void __launch_bounds__(THREADS, 2)
warpgroup_mn_major(int M, int N, int K, const unsigned short *__restrict__ A, int lda,
                 const unsigned short *__restrict__ B, int ldb, float *__restrict__ C, int ldc)
{
    __shared__ alignas(1024) unsigned short A_shared[STAGES][BM / W][BK][W];
    __shared__ alignas(1024) unsigned short B_shared[STAGES][BN / W][BK][W];

    const int blocks_n = (N + BN - 1) / BN, thread = threadIdx.x;
    const int tile_m = blockIdx.x / blocks_n * BM, tile_n = blockIdx.x % blocks_n * BN;
    float acc[2][BN / 4];
    for (int i = 0; i < BN / 4; ++i) acc[0][i] = acc[1][i] = 0.0f;
    for (int tile_k = 0; tile_k < K; tile_k += BK) {
        const int stage = tile_k / BK % STAGES;
        for (int i = thread; i < BK * BM; i += THREADS) {
            const int k = i / BM, m = i % BM, swizzle = k * SPAN / 128 % (SPAN / 16) * 8;
            const bool inside = tile_m + m < M && tile_k + k < K;
            A_shared[stage][m / W][k][m % W ^ swizzle] =
                inside ? A[(long long)(tile_k + k) * lda + tile_m + m] : 0;
        }
        for (int i = thread; i < BK * BN; i += THREADS) {
            const int k = i / BN, n = i % BN, swizzle = k * SPAN / 128 % (SPAN / 16) * 8;
            const bool inside = tile_n + n < N && tile_k + k < K;
            B_shared[stage][n / W][k][n % W ^ swizzle] =
                inside ? B[(long long)(tile_k + k) * ldb + tile_n + n] : 0;
        }
        gg_fence_async();
        __syncthreads();
        const unsigned long long a = gg_matrix_64B_mn_major(A_shared[stage], BK * SPAN);
        const unsigned long long b = gg_matrix_64B_mn_major(B_shared[stage], BK * SPAN);
        gg_wgmma_fence();
        for (int k = 0; k < BK; k += 16) {
            gg_wgmma_m64n64k16_bf16_mn_major_ab(acc[0], acc[1], a + k * SPAN / 16, b + k * SPAN / 16,
                                              tile_k + k > 0);
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

// C = A * B^T in tiles of 64 x 32 by one warpgroup, with operands of other than 16 bits: its threads
// write tiles of A and B to shared memory in swizzled rows of 64 bytes.
// Parameters: M, N, K, A[m, k], lda, B[n, k], ldb, C[m, n], ldc.
// 128 threads.
// ---- kernel ----
constexpr int SIZE = sizeof(OPERAND), BM = 64, BN = 32, BK = 64 / SIZE, THREADS = 128;

extern "C" __global__ void __launch_bounds__(THREADS, 2)
warpgroup_types(int M, int N, int K, const OPERAND *__restrict__ A, int lda,
                const OPERAND *__restrict__ B, int ldb, SUM *__restrict__ C, int ldc)
{
    __shared__ alignas(1024) OPERAND A_shared[BM][BK];
    __shared__ alignas(1024) OPERAND B_shared[BN][BK];

    const int blocks_n = (N + BN - 1) / BN, thread = threadIdx.x;
    const int tile_m = blockIdx.x / blocks_n * BM, tile_n = blockIdx.x % blocks_n * BN;
    SUM acc[2][BN / 4];
    for (int i = 0; i < BN / 4; ++i) acc[0][i] = acc[1][i] = 0;
    for (int tile_k = 0; tile_k < K; tile_k += BK) {
        for (int i = thread; i < BM * BK; i += THREADS) {
            const int m = i / BK, k = i % BK;
            const bool inside = tile_m + m < M && tile_k + k < K;
            A_shared[m][k ^ m / 2 % 4 * 16 / SIZE] =
                inside ? A[(long long)(tile_m + m) * lda + tile_k + k] : static_cast<OPERAND>(0);
        }
        for (int i = thread; i < BN * BK; i += THREADS) {
            const int n = i / BK, k = i % BK;
            const bool inside = tile_n + n < N && tile_k + k < K;
            B_shared[n][k ^ n / 2 % 4 * 16 / SIZE] =
                inside ? B[(long long)(tile_n + n) * ldb + tile_k + k] : static_cast<OPERAND>(0);
        }
        gg_fence_async();
        __syncthreads();
        const unsigned long long a = gg_matrix_64B(A_shared), b = gg_matrix_64B(B_shared);
        gg_wgmma_fence();
        for (int step = 0; step < 2; ++step) {
            MULTIPLY(acc[0], acc[1], a + step * 2, b + step * 2, 1);
        }
        gg_wgmma_commit();
        gg_wgmma_end(acc);
    }
    const int row = tile_m + thread / 32 * 16 + thread % 32 / 4, column = tile_n + thread % 4 * 2;
    for (int i = 0; i < 2; ++i) {
        for (int j = 0; j < BN / 4; ++j) {
            const int m = row + i * 8, n = column + j / 2 * 8 + j % 2;
            if (m < M && n < N) C[(long long)m * ldc + n] = acc[i][j];
        }
    }
}
// ---- end of kernel ----

// The tiled kernel with A transposed in shared memory: rows of A are read coalesced and stored as
// columns, and a pad of one element puts the elements of a column in 32 different banks.
// Parameters: M, N, K, alpha, A[m, k], lda, B[k, n], ldb, beta, C[m, n], ldc.  32 x 32 threads.
// ---- kernel ----
constexpr int TILE = 32;

extern "C" __global__ void __launch_bounds__(TILE * TILE)
    gemm(int M, int N, int K, float alpha, const float *__restrict__ A, int lda,
         const float *__restrict__ B, int ldb, float beta, float *__restrict__ C, int ldc) {
  __shared__ float A_shared[TILE][TILE + 1];  // [k][m]
  __shared__ float B_shared[TILE][TILE];

  const int blocks_n = (N + TILE - 1) / TILE;
  const int x = threadIdx.x, y = threadIdx.y;
  const int m = blockIdx.x / blocks_n * TILE + y;
  const int n = blockIdx.x % blocks_n * TILE + x;

  float acc = 0.0f;
  for (int tile_k = 0; tile_k < K; tile_k += TILE) {
    A_shared[x][y] =
        m < M && tile_k + x < K ? A[static_cast<long long>(m) * lda + tile_k + x] : 0.0f;
    B_shared[y][x] =
        tile_k + y < K && n < N ? B[static_cast<long long>(tile_k + y) * ldb + n] : 0.0f;
    __syncthreads();

#pragma unroll
    for (int k = 0; k < TILE; ++k) {
      acc = fmaf(A_shared[k][y], B_shared[k][x], acc);
    }
    __syncthreads();
  }

  if (m < M && n < N) {
    float &c = C[static_cast<long long>(m) * ldc + n];
    c = beta == 0.0f ? alpha * acc : fmaf(beta, c, alpha * acc);
  }
}
// ---- end of kernel ----

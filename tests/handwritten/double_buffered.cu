// The padded kernel with two stages of shared memory: a thread reads its elements of the next
// tile into registers before it computes with this one, and stores them after; a barrier per tile.
// Parameters: M, N, K, alpha, A[m, k], lda, B[k, n], ldb, beta, C[m, n], ldc.  32 x 32 threads.
// ---- kernel ----
constexpr int TILE = 32;

extern "C" __global__ void __launch_bounds__(TILE * TILE)
    gemm(int M, int N, int K, float alpha, const float *__restrict__ A, int lda,
         const float *__restrict__ B, int ldb, float beta, float *__restrict__ C, int ldc) {
  __shared__ float A_shared[2][TILE][TILE + 1];  // [stage][k][m]
  __shared__ float B_shared[2][TILE][TILE];

  const int blocks_n = (N + TILE - 1) / TILE;
  const int x = threadIdx.x, y = threadIdx.y;
  const int m = blockIdx.x / blocks_n * TILE + y;
  const int n = blockIdx.x % blocks_n * TILE + x;

  const auto load_a = [&](int k) {
    return m < M && k < K ? A[static_cast<long long>(m) * lda + k] : 0.0f;
  };
  const auto load_b = [&](int k) {
    return k < K && n < N ? B[static_cast<long long>(k) * ldb + n] : 0.0f;
  };

  A_shared[0][x][y] = load_a(x);
  B_shared[0][y][x] = load_b(y);
  __syncthreads();

  float acc = 0.0f;
  int stage = 0;
  for (int tile_k = 0; tile_k < K; tile_k += TILE) {
    const float a_next = load_a(tile_k + TILE + x);
    const float b_next = load_b(tile_k + TILE + y);

#pragma unroll
    for (int k = 0; k < TILE; ++k) {
      acc = fmaf(A_shared[stage][k][y], B_shared[stage][k][x], acc);
    }

    stage ^= 1;
    A_shared[stage][x][y] = a_next;
    B_shared[stage][y][x] = b_next;
    __syncthreads();
  }

  if (m < M && n < N) {
    float &c = C[static_cast<long long>(m) * ldc + n];
    c = beta == 0.0f ? alpha * acc : fmaf(beta, c, alpha * acc);
  }
}
// ---- end of kernel ----

// A thread computes 8 x 8 elements of C from 8 elements of A and 8 of B that it holds in registers; the
// next tile is loaded into registers before the arithmetic and stored after it.
// Parameters: M, N, K, alpha, A[m, k], lda, B[k, n], ldb, beta, C[m, n], ldc.  16 x 16 threads.
// ---- kernel ----
constexpr int BM = 128, BN = 128, BK = 8, TM = 8, TN = 8;
constexpr int THREADS = (BM / TM) * (BN / TN);
constexpr int COPIES = BM * BK / THREADS;
static_assert(BM == BN && BM * BK % THREADS == 0, "tiles are loaded evenly");

extern "C" __global__ void __launch_bounds__(THREADS)
    gemm(int M, int N, int K, float alpha, const float *__restrict__ A, int lda,
         const float *__restrict__ B, int ldb, float beta, float *__restrict__ C, int ldc) {
  __shared__ float A_shared[2][BK][BM + 1];  // [stage][k][m]
  __shared__ float B_shared[2][BK][BN];

  const int blocks_n = (N + BN - 1) / BN;
  const int block_m = blockIdx.x / blocks_n * BM;
  const int block_n = blockIdx.x % blocks_n * BN;
  const int thread = threadIdx.y * (BN / TN) + threadIdx.x;
  const int thread_m = threadIdx.y * TM;
  const int thread_n = threadIdx.x * TN;

  const auto load = [&](int tile_k, float (&a)[COPIES], float (&b)[COPIES]) {
#pragma unroll
    for (int i = 0; i < COPIES; ++i) {
      const int at = thread + i * THREADS;
      const int m = block_m + at / BK, k = tile_k + at % BK;
      a[i] = m < M && k < K ? A[static_cast<long long>(m) * lda + k] : 0.0f;
      const int row = tile_k + at / BN, n = block_n + at % BN;
      b[i] = row < K && n < N ? B[static_cast<long long>(row) * ldb + n] : 0.0f;
    }
  };
  const auto store = [&](int stage, const float (&a)[COPIES], const float (&b)[COPIES]) {
#pragma unroll
    for (int i = 0; i < COPIES; ++i) {
      const int at = thread + i * THREADS;
      A_shared[stage][at % BK][at / BK] = a[i];
      B_shared[stage][at / BN][at % BN] = b[i];
    }
  };

  float a_next[COPIES], b_next[COPIES];
  load(0, a_next, b_next);
  store(0, a_next, b_next);
  __syncthreads();

  float acc[TM][TN] = {};
  int stage = 0;
  for (int tile_k = 0; tile_k < K; tile_k += BK) {
    load(tile_k + BK, a_next, b_next);

#pragma unroll
    for (int k = 0; k < BK; ++k) {
      float a[TM], b[TN];
#pragma unroll
      for (int i = 0; i < TM; ++i) a[i] = A_shared[stage][k][thread_m + i];
#pragma unroll
      for (int j = 0; j < TN; ++j) b[j] = B_shared[stage][k][thread_n + j];
#pragma unroll
      for (int i = 0; i < TM; ++i) {
#pragma unroll
        for (int j = 0; j < TN; ++j) acc[i][j] = fmaf(a[i], b[j], acc[i][j]);
      }
    }

    stage ^= 1;
    store(stage, a_next, b_next);
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < TM; ++i) {
#pragma unroll
    for (int j = 0; j < TN; ++j) {
      const int m = block_m + thread_m + i, n = block_n + thread_n + j;
      if (m >= M || n >= N) continue;
      float &c = C[static_cast<long long>(m) * ldc + n];
      c = beta == 0.0f ? alpha * acc[i][j] : fmaf(beta, c, alpha * acc[i][j]);
    }
  }
}
// ---- end of kernel ----

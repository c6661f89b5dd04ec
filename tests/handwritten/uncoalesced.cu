// The naive kernel with threadIdx.x along the columns of C: the threads of a warp touch 32 rows.
// Parameters: M, N, K, alpha, A[m, k], lda, B[k, n], ldb, beta, C[m, n], ldc.  256 threads.
// ---- kernel ----
constexpr int BM = 32, BN = 8;

extern "C" __global__ void __launch_bounds__(BM * BN)
    gemm(int M, int N, int K, float alpha, const float *__restrict__ A, int lda,
         const float *__restrict__ B, int ldb, float beta, float *__restrict__ C, int ldc) {
  const int blocks_n = (N + BN - 1) / BN;
  const int m = blockIdx.x / blocks_n * BM + threadIdx.x;
  const int n = blockIdx.x % blocks_n * BN + threadIdx.y;
  if (m >= M || n >= N) return;

  float acc = 0.0f;
  for (int k = 0; k < K; ++k) {
    acc = fmaf(A[static_cast<long long>(m) * lda + k], B[static_cast<long long>(k) * ldb + n], acc);
  }

  float &c = C[static_cast<long long>(m) * ldc + n];
  c = beta == 0.0f ? alpha * acc : fmaf(beta, c, alpha * acc);
}
// ---- end of kernel ----

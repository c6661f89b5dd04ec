// C = relu(A * B + bias): 8 x 8 elements a thread, as four blocks of 4 x 4; float4 accesses to
// global and shared memory; the next tile's global loads overlap this tile's arithmetic.
// Parameters: M, N, K, A[m, k], lda, B[k, n], ldb, bias[n], C[m, n], ldc.  16 x 16 threads.
// A, B and C are 16-byte aligned; lda, ldb and ldc are multiples of 4.
// ---- kernel ----
constexpr int BM = 128, BN = 128, BK = 8, TM = 8, TN = 8, PAD = 4;
constexpr int THREADS = (BM / TM) * (BN / TN);
static_assert(BM * BK == 4 * THREADS && BK * BN == 4 * THREADS, "a thread loads a float4 of each");

extern "C" __global__ void __launch_bounds__(THREADS)
    gemm(int M, int N, int K, const float *__restrict__ A, int lda, const float *__restrict__ B,
         int ldb, const float *__restrict__ bias, float *__restrict__ C, int ldc) {
  __shared__ alignas(16) float A_shared[2][BK][BM + PAD];  // [stage][k][m]
  __shared__ alignas(16) float B_shared[2][BK][BN];

  const int blocks_n = (N + BN - 1) / BN;
  const int block_m = blockIdx.x / blocks_n * BM;
  const int block_n = blockIdx.x % blocks_n * BN;
  const int thread = threadIdx.y * (BN / TN) + threadIdx.x;
  const int a_m = thread / (BK / 4), a_k = thread % (BK / 4) * 4;
  const int b_k = thread / (BN / 4), b_n = thread % (BN / 4) * 4;

  // Four elements of a row of which `count` are left; zeros behind them.
  const auto load4 = [](const float *row, int count) {
    if (count >= 4) return *reinterpret_cast<const float4 *>(row);
    return make_float4(count > 0 ? row[0] : 0.0f, count > 1 ? row[1] : 0.0f,
                       count > 2 ? row[2] : 0.0f, 0.0f);
  };
  const auto load_a = [&](int tile_k) {
    const int m = block_m + a_m, k = tile_k + a_k;
    return load4(&A[static_cast<long long>(m) * lda + k], m < M ? K - k : 0);
  };
  const auto load_b = [&](int tile_k) {
    const int k = tile_k + b_k, n = block_n + b_n;
    return load4(&B[static_cast<long long>(k) * ldb + n], k < K ? N - n : 0);
  };
  const auto store = [&](int stage, float4 a, float4 b) {
    A_shared[stage][a_k + 0][a_m] = a.x;
    A_shared[stage][a_k + 1][a_m] = a.y;
    A_shared[stage][a_k + 2][a_m] = a.z;
    A_shared[stage][a_k + 3][a_m] = a.w;
    *reinterpret_cast<float4 *>(&B_shared[stage][b_k][b_n]) = b;
  };

  store(0, load_a(0), load_b(0));
  __syncthreads();

  float acc[TM][TN] = {};
  int stage = 0;
  for (int tile_k = 0; tile_k < K; tile_k += BK) {
    const float4 a_next = load_a(tile_k + BK);
    const float4 b_next = load_b(tile_k + BK);

#pragma unroll
    for (int k = 0; k < BK; ++k) {
      alignas(16) float a[TM], b[TN];
#pragma unroll
      for (int i = 0; i < TM; i += 4) {
        *reinterpret_cast<float4 *>(&a[i]) = *reinterpret_cast<const float4 *>(
            &A_shared[stage][k][i * (BM / TM) + threadIdx.y * 4]);
      }
#pragma unroll
      for (int j = 0; j < TN; j += 4) {
        *reinterpret_cast<float4 *>(&b[j]) = *reinterpret_cast<const float4 *>(
            &B_shared[stage][k][j * (BN / TN) + threadIdx.x * 4]);
      }
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

  float my_bias[TN];  // the same for each row
#pragma unroll
  for (int j = 0; j < TN; ++j) {
    const int n = block_n + j / 4 * 4 * (BN / TN) + threadIdx.x * 4 + j % 4;
    my_bias[j] = n < N ? bias[n] : 0.0f;
  }
#pragma unroll
  for (int i = 0; i < TM; ++i) {
    const int m = block_m + i / 4 * 4 * (BM / TM) + threadIdx.y * 4 + i % 4;
    if (m >= M) break;
#pragma unroll
    for (int j = 0; j < TN; j += 4) {
      const int n = block_n + j * (BN / TN) + threadIdx.x * 4;
      alignas(16) float values[4];
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        const float x = acc[i][j + v] + my_bias[j + v];
        values[v] = x < 0.0f ? 0.0f : x;
      }
      float *c = &C[static_cast<long long>(m) * ldc + n];
      if (n + 4 <= N) {
        *reinterpret_cast<float4 *>(c) = *reinterpret_cast<const float4 *>(values);
      } else {
#pragma unroll
        for (int v = 0; v < 4; ++v) {
          if (n + v < N) c[v] = values[v];
        }
      }
    }
  }
}
// ---- end of kernel ----

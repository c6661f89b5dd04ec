// C = alpha * A * B + beta * C in tiles of 64 x 64 that four blocks share: each sums a range of k
// and leaves its part in the workspace, the last one to come adds the parts in order.  4 x 4 elements
// a thread; float4 accesses; the next tile's global loads overlap this tile's arithmetic.
// Parameters: M, N, K, alpha, A[m, k], lda, B[k, n], ldb, beta, C[m, n], ldc, workspace, arrived.
// 16 x 16 threads.  A, B, C and workspace are 16-byte aligned; lda, ldb and ldc multiples of 4.
// ---- kernel ----
constexpr int BM = 64, BN = 64, BK = 16, TM = 4, TN = 4, PAD = 4, PARTS = 4;
constexpr int THREADS = (BM / TM) * (BN / TN);
static_assert(BM * BK == 4 * THREADS && BK * BN == 4 * THREADS, "a thread loads a float4 of each");

extern "C" __global__ void __launch_bounds__(THREADS)
    gemm(int M, int N, int K, float alpha, const float *__restrict__ A, int lda,
         const float *__restrict__ B, int ldb, float beta, float *__restrict__ C, int ldc,
         float *workspace, unsigned *arrived) {
  __shared__ alignas(16) float A_shared[2][BK][BM + PAD];  // [stage][k][m]
  __shared__ alignas(16) float B_shared[2][BK][BN];

  const int blocks_n = (N + BN - 1) / BN;
  const int tiles = (M + BM - 1) / BM * blocks_n;
  const int tile = blockIdx.x % tiles, part = blockIdx.x / tiles;
  const int block_m = tile / blocks_n * BM;
  const int block_n = tile % blocks_n * BN;
  const int steps = ((K + BK - 1) / BK + PARTS - 1) / PARTS;
  const int begin = part * steps * BK, end = min(begin + steps * BK, K);
  const int thread = threadIdx.y * (BN / TN) + threadIdx.x;
  const int a_m = thread / (BK / 4), a_k = thread % (BK / 4) * 4;
  const int b_k = thread / (BN / 4), b_n = thread % (BN / 4) * 4;
  const int own_m = threadIdx.y * TM, own_n = threadIdx.x * TN;

  // Four elements of a row of which `count` are left; zeros behind them.
  const auto load4 = [](const float *row, int count) {
    if (count >= 4) return *reinterpret_cast<const float4 *>(row);
    return make_float4(count > 0 ? row[0] : 0.0f, count > 1 ? row[1] : 0.0f,
                       count > 2 ? row[2] : 0.0f, 0.0f);
  };
  const auto load_a = [&](int tile_k) {
    const int m = block_m + a_m, k = tile_k + a_k;
    return load4(&A[static_cast<long long>(m) * lda + k], m < M ? end - k : 0);
  };
  const auto load_b = [&](int tile_k) {
    const int k = tile_k + b_k, n = block_n + b_n;
    return load4(&B[static_cast<long long>(k) * ldb + n], k < end ? N - n : 0);
  };
  const auto store = [&](int stage, float4 a, float4 b) {
    A_shared[stage][a_k + 0][a_m] = a.x;
    A_shared[stage][a_k + 1][a_m] = a.y;
    A_shared[stage][a_k + 2][a_m] = a.z;
    A_shared[stage][a_k + 3][a_m] = a.w;
    *reinterpret_cast<float4 *>(&B_shared[stage][b_k][b_n]) = b;
  };

  float4 acc[TM] = {};
  store(0, load_a(begin), load_b(begin));
  __syncthreads();
  int stage = 0;
  for (int tile_k = begin; tile_k < end; tile_k += BK) {
    const float4 next_a = load_a(tile_k + BK), next_b = load_b(tile_k + BK);
#pragma unroll
    for (int k = 0; k < BK; ++k) {
      const float4 a = *reinterpret_cast<const float4 *>(&A_shared[stage][k][own_m]);
      const float4 b = *reinterpret_cast<const float4 *>(&B_shared[stage][k][own_n]);
      const float column[TM] = {a.x, a.y, a.z, a.w};
#pragma unroll
      for (int i = 0; i < TM; ++i) {
        acc[i].x = fmaf(column[i], b.x, acc[i].x);
        acc[i].y = fmaf(column[i], b.y, acc[i].y);
        acc[i].z = fmaf(column[i], b.z, acc[i].z);
        acc[i].w = fmaf(column[i], b.w, acc[i].w);
      }
    }
    store(1 - stage, next_a, next_b);
    __syncthreads();
    stage = 1 - stage;
  }

  // The parts of a tile lie `tiles` tiles apart.
  float4 *const space = reinterpret_cast<float4 *>(workspace) + thread;
  constexpr int TILE = BM * BN / 4;
#pragma unroll
  for (int i = 0; i < TM; ++i) space[(long long)blockIdx.x * TILE + i * THREADS] = acc[i];
  __syncthreads();
  const bool counts = thread == 0;
  if (!__syncthreads_or(counts && gg_count_in(&arrived[tile], PARTS - 1) == PARTS - 1)) return;
#pragma unroll
  for (int i = 0; i < TM; ++i) acc[i] = space[(long long)tile * TILE + i * THREADS];
#pragma unroll
  for (int other = 1; other < PARTS; ++other) {
#pragma unroll
    for (int i = 0; i < TM; ++i) {
      const float4 more = space[(long long)(other * tiles + tile) * TILE + i * THREADS];
      acc[i].x += more.x;
      acc[i].y += more.y;
      acc[i].z += more.z;
      acc[i].w += more.w;
    }
  }

#pragma unroll
  for (int i = 0; i < TM; ++i) {
    const int m = block_m + own_m + i, n = block_n + own_n;
    if (m >= M) continue;
    float *const row = &C[static_cast<long long>(m) * ldc + n];
    const float4 old = beta != 0.0f ? load4(row, N - n) : make_float4(0, 0, 0, 0);
    float4 out = make_float4(alpha * acc[i].x, alpha * acc[i].y, alpha * acc[i].z, alpha * acc[i].w);
    if (beta != 0.0f) {
      out = make_float4(fmaf(beta, old.x, out.x), fmaf(beta, old.y, out.y),
                        fmaf(beta, old.z, out.z), fmaf(beta, old.w, out.w));
    }
    if (n + 3 < N) {
      *reinterpret_cast<float4 *>(row) = out;
    } else {
      if (n + 0 < N) row[0] = out.x;
      if (n + 1 < N) row[1] = out.y;
      if (n + 2 < N) row[2] = out.z;
    }
  }
}
// ---- end of kernel ----

// A caller of naive.cu, written from the comment at its top: C = alpha A B + beta C on the
// legacy stream, once at a size of whole tiles and once at a ragged one.  Exit code 0: all right.
#include <cstdio>
#include <vector>

#include <cuda_runtime.h>

cudaError_t launch_gemm(int M, int N, int K, float alpha, const float *A, int lda,
                        const float *B, int ldb, float beta, float *C, int ldc, cudaStream_t stream);

static float *on_device(const std::vector<float> &values) {
  float *there = nullptr;
  if (cudaMalloc(&there, values.size() * sizeof(float)) != cudaSuccess) return nullptr;
  cudaMemcpy(there, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice);
  return there;
}

static bool is_right(int M, int N, int K) {
  const int lda = K + 1, ldb = N + 2, ldc = N + 3;
  std::vector<float> A(M * lda), B(K * ldb), C(M * ldc, -1.0f);
  for (int i = 0; i < M * lda; ++i) A[i] = static_cast<float>(i % 7 - 3);
  for (int i = 0; i < K * ldb; ++i) B[i] = static_cast<float>(i % 5 - 2);
  float *a = on_device(A), *b = on_device(B), *c = on_device(C);
  if (!a || !b || !c) return false;
  const cudaError_t error = launch_gemm(M, N, K, 2.0f, a, lda, b, ldb, 3.0f, c, ldc, nullptr);
  cudaMemcpy(C.data(), c, C.size() * sizeof(float), cudaMemcpyDeviceToHost);
  bool right = error == cudaSuccess;
  for (int m = 0; m < M; ++m) {
    for (int n = 0; n < N; ++n) {
      float sum = 0.0f;
      for (int k = 0; k < K; ++k) sum += A[m * lda + k] * B[k * ldb + n];
      right = right && C[m * ldc + n] == 2.0f * sum - 3.0f;
    }
  }
  // The next call breaks a requirement, so it must launch nothing and say so.
  right = right && launch_gemm(M, N, K, 2.0f, a, K - 1, b, ldb, 3.0f, c, ldc, nullptr) != cudaSuccess;
  for (float *memory : {a, b, c}) cudaFree(memory);
  return right;
}

int main() {
  if (is_right(128, 256, 64) && is_right(131, 67, 33)) return 0;
  std::puts("wrong");
  return 1;
}

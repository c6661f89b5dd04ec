// A caller that includes the header of `emit --header --types cuda`: C = A B, A and B of __half, C of
// __nv_bfloat16, with numbers whose products and sums are exact.  Exit code 0: all right.
#include <vector>

#include <cuda_runtime.h>

#include "half_gemm.h"

template <typename T>
static T *on_device(const std::vector<T> &values) {
  T *there = nullptr;
  if (cudaMalloc(&there, values.size() * sizeof(T)) != cudaSuccess) return nullptr;
  cudaMemcpy(there, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice);
  return there;
}

int main() {
  const int M = 72, N = 40, K = 24;
  std::vector<__half> A(M * K), B(K * N);
  std::vector<__nv_bfloat16> C(M * N);
  for (int i = 0; i < M * K; ++i) A[i] = __float2half(static_cast<float>(i % 7 - 3));
  for (int i = 0; i < K * N; ++i) B[i] = __float2half(static_cast<float>(i % 5 - 2));
  __half *a = on_device(A), *b = on_device(B);
  __nv_bfloat16 *c = on_device(C);
  if (!a || !b || !c) return 2;
  const cudaError_t error = launch_half_gemm(M, N, K, 1.0f, a, K, b, N, 0.0f, c, N, nullptr);
  cudaMemcpy(C.data(), c, C.size() * sizeof(__nv_bfloat16), cudaMemcpyDeviceToHost);
  bool right = error == cudaSuccess;
  for (int m = 0; m < M; ++m) {
    for (int n = 0; n < N; ++n) {
      float sum = 0.0f;
      for (int k = 0; k < K; ++k) sum += __half2float(A[m * K + k]) * __half2float(B[k * N + n]);
      right = right && __bfloat162float(C[m * N + n]) == sum;
    }
  }
  return right ? 0 : 1;
}

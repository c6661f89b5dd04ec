// The calls of cuBLAS that a host program makes, by the definition of a matrix stored by columns.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

enum cublasStatus_t { CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_INVALID_VALUE = 7 };
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T };
enum cublasMath_t { CUBLAS_DEFAULT_MATH, CUBLAS_PEDANTIC_MATH = 2 };
enum cublasComputeType_t {
  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_64F = 70,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77
};
enum cublasGemmAlgo_t { CUBLAS_GEMM_DEFAULT = -1 };
using cublasHandle_t = int;

inline const char *cublasGetStatusString(cublasStatus_t status) { return status ? "wrong" : "ok"; }
inline cublasStatus_t cublasCreate(cublasHandle_t *) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasDestroy(cublasHandle_t) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }

inline double at(const void *memory, cudaDataType_t type, long long index) {
  switch (type) {
    case CUDA_R_32F: return static_cast<const float *>(memory)[index];
    case CUDA_R_64F: return static_cast<const double *>(memory)[index];
    case CUDA_R_16F: return float(static_cast<const __half *>(memory)[index]);
    default: return float(static_cast<const __nv_bfloat16 *>(memory)[index]);
  }
}
inline void put(void *memory, cudaDataType_t type, long long index, double number) {
  switch (type) {
    case CUDA_R_32F: static_cast<float *>(memory)[index] = static_cast<float>(number); break;
    case CUDA_R_64F: static_cast<double *>(memory)[index] = number; break;
    case CUDA_R_16F: static_cast<__half *>(memory)[index] = __half(number); break;
    default: static_cast<__nv_bfloat16 *>(memory)[index] = __nv_bfloat16(number);
  }
}

// One matrix or several, `stride` elements apart: C = A B, as alpha is 1 and beta 0.
inline cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t, cublasOperation_t a_op, cublasOperation_t b_op, int m, int n, int k,
    const void *, const void *A, cudaDataType_t a_type, int lda, long long a_stride, const void *B,
    cudaDataType_t b_type, int ldb, long long b_stride, const void *, void *C,
    cudaDataType_t c_type, int ldc, long long c_stride, int count, cublasComputeType_t,
    cublasGemmAlgo_t) {
  if (lda < (a_op ? k : m) || ldb < (b_op ? n : k) || ldc < m) return CUBLAS_STATUS_INVALID_VALUE;
  for (int one = 0; one < count; ++one)
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        double sum = 0.0;
        for (int l = 0; l < k; ++l) {
          const long long a = a_op ? (long long)i * lda + l : (long long)l * lda + i;
          const long long b = b_op ? (long long)l * ldb + j : (long long)j * ldb + l;
          sum += at(A, a_type, one * a_stride + a) * at(B, b_type, one * b_stride + b);
        }
        put(C, c_type, one * c_stride + (long long)j * ldc + i, sum);
      }
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasGemmEx(
    cublasHandle_t handle, cublasOperation_t a_op, cublasOperation_t b_op, int m, int n, int k,
    const void *alpha, const void *A, cudaDataType_t a_type, int lda, const void *B,
    cudaDataType_t b_type, int ldb, const void *beta, void *C, cudaDataType_t c_type, int ldc,
    cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {
  return cublasGemmStridedBatchedEx(handle, a_op, b_op, m, n, k, alpha, A, a_type, lda, 0, B,
                                    b_type, ldb, 0, beta, C, c_type, ldc, 0, 1, compute, algorithm);
}

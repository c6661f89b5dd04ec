// mini: kernels that gemmgen emitted. A product is a function here, which launches the kernel
// that is the fastest one for the shape.
//
// Matrices are in device memory. A leading dimension is the elements from a row to the next, in the
// order of the letters: A[m, k] has rows along k. Functions launch on the stream, and do not wait.
// `workspace` has the bytes that the function of that name returns for the extents, is aligned to
// 256 bytes, and holds zeros before its first use (cudaMemset); each call leaves its counters zero.
// Calls that may run at the same time need workspaces of their own. It may be null for 0 bytes.
//
// They return
//     cudaSuccess                 a kernel was launched, or the result has no element
//     cudaErrorInvalidValue       an extent is negative, or a leading dimension too small
//     cudaErrorMisalignedAddress  a pointer is not aligned to its elements
// or another error of the CUDA runtime or driver.
#pragma once

#include <cuda_runtime_api.h>

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// C[m, n] = alpha * acc + beta * C[m, n], acc = sum over k of A[m, k] * B[k, n] (f32)
size_t mini_product_workspace(int M, int N, int K);
cudaError_t mini_product(int M, int N, int K, float alpha, const float *A, int lda, const float *B,
    int ldb, float beta, float *C, int ldc, void *workspace, size_t workspace_bytes,
    cudaStream_t stream);

#ifdef __cplusplus
}
#endif

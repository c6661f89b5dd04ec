// C = A for 16 x 16 elements of 16 bits: a warp stores four matrices of 8 x 8 to shared memory.
// Parameters: M, N, A[m, n], lda, C[m, n], ldc.
// 32 threads.
// ---- kernel ----
extern "C" __global__ void __launch_bounds__(32)
stored(int M, int N, const unsigned short *__restrict__ A, int lda,
       unsigned short *__restrict__ C, int ldc)
{
    __shared__ alignas(16) unsigned short tile[16][24];
    const int lane = threadIdx.x;
    alignas(16) unsigned short pairs[8];
    for (int i = 0; i < 4; ++i) {
        const int m = i % 2 * 8 + lane / 4, n = i / 2 * 8 + lane % 4 * 2;
        pairs[i * 2] = A[m * lda + n];
        pairs[i * 2 + 1] = A[m * lda + n + 1];
    }
    gg_stmatrix_x4(&tile[lane % 16][lane / 16 * 8], pairs);
    __syncwarp();
    for (int i = lane; i < 16 * 16; i += 32) C[i / 16 * ldc + i % 16] = tile[i / 16][i % 16];
}
// ---- end of kernel ----

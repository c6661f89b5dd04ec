// wgmma.wait_group 0: waits for all groups; `sums` as an operand keeps reads of it after the wait.
template <int rows, int columns>
__device__ __forceinline__ void gg_wgmma_end(float (&sums)[rows][columns]) {
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
    for (int i = 0; i < rows * columns; ++i)
        asm volatile("" : "+f"(sums[i / columns][i % columns]) :: "memory");
}

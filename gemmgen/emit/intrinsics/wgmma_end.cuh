// wgmma.wait_group 0: waits for all groups; the operands keep reads of `acc` after it.
template <int rows, int columns>
__device__ __forceinline__ void gg_wgmma_end(float (&acc)[rows][columns]) {
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
    for (int i = 0; i < rows * columns; ++i)
        asm volatile("" : "+f"(acc[i / columns][i % columns]) :: "memory");
}

// wgmma.fence: the registers of the sums are ready for this warpgroup's next multiplications.
__device__ __forceinline__ void gg_wgmma_fence() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

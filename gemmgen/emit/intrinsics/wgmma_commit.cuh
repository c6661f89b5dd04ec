// wgmma.commit_group: the multiplications that this warpgroup has begun are a group.
__device__ __forceinline__ void gg_wgmma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

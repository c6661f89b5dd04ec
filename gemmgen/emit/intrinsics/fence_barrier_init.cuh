// fence.mbarrier_init: the copy engine sees the barriers that this thread has initialized.
__device__ __forceinline__ void gg_fence_barrier_init() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// fence.proxy.async: the copy engine comes after this thread's accesses to shared memory.
__device__ __forceinline__ void gg_fence_async() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// fence.proxy.async: the copy engine sees what this thread has written to shared memory.
__device__ __forceinline__ void gg_fence_async()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

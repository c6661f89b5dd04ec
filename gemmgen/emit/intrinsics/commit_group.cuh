// Ends a group of this thread's asynchronous copies.
__device__ __forceinline__ void gg_commit_group()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

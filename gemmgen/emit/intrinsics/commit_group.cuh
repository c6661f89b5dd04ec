// Commits this thread's asynchronous copies as a group.
__device__ __forceinline__ void gg_commit_group()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

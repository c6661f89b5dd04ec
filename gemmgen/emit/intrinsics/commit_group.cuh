// cp.async.commit_group: makes this thread's uncommitted cp.async copies one group.
__device__ __forceinline__ void gg_commit_group()
{ asm volatile("cp.async.commit_group;" ::: "memory"); }

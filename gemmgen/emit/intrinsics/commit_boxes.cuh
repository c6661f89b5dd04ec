// cp.async.bulk.commit_group: makes this thread's uncommitted TMA stores one group.
__device__ __forceinline__ void gg_commit_boxes()
{ asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// cp.async.bulk.commit_group: the boxes that this thread has stored since the last one are a group.
__device__ __forceinline__ void gg_commit_boxes() {
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

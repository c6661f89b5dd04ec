// A barrier of all threads of the cluster's blocks.
__device__ __forceinline__ void gg_sync_cluster()
{
    asm volatile("barrier.cluster.arrive.release.aligned;\n"
                 "barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

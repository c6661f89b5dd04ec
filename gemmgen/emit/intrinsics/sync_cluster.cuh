// barrier.cluster: waits until all threads of the cluster have arrived.
__device__ __forceinline__ void gg_sync_cluster() {
    __syncwarp();
    asm volatile("barrier.cluster.arrive.release.aligned;\n"
                 "barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

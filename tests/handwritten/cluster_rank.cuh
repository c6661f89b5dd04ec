// The number of this block in its cluster.
__device__ __forceinline__ unsigned gg_cluster_rank()
{
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

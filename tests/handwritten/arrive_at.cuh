// One arrival at this barrier in the shared memory of block `rank` of the cluster.
__device__ __forceinline__ void gg_arrive_at(unsigned long long &barrier, unsigned rank)
{
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
    asm volatile("{\n"
                 ".reg .b32 there;\n"
                 "mapa.shared::cluster.u32 there, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
                 "}" :: "r"(at), "r"(rank) : "memory");
}

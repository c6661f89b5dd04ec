// mapa, mbarrier.arrive: one arrival at this barrier in the cluster's block of this rank.
__device__ __forceinline__ void gg_arrive_at(unsigned long long &barrier, int rank)
{ asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
               "mbarrier.arrive.shared::cluster.b64 _, [there];\n}"
               :: "r"(gg_shared(&barrier)), "r"(rank) : "memory"); }

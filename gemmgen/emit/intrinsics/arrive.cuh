// mbarrier.arrive: one arrival; releases this thread's earlier accesses to the waiters.
__device__ __forceinline__ void gg_arrive(unsigned long long &barrier)
{ asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(gg_shared(&barrier)) : "memory"); }

// wgmma.wait_group: waits until at most `pending` groups are in flight.
template <int pending> __device__ __forceinline__ void gg_wgmma_wait()
{ asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(pending) : "memory"); }

// griddepcontrol.wait: waits until the preceding kernel has completed and its writes are visible;
// returns at once without programmatic dependent launch.
__device__ __forceinline__ void gg_wait_grid()
{ asm volatile("griddepcontrol.wait;" ::: "memory"); }

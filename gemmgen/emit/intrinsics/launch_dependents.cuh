// griddepcontrol.launch_dependents: the dependent kernel may start once all blocks reach this.
__device__ __forceinline__ void gg_launch_dependents()
{ asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

// griddepcontrol.launch_dependents: the kernel behind may begin once every block has come here.
__device__ __forceinline__ void gg_launch_dependents() {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

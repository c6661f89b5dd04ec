// griddepcontrol.wait: until the kernel in front has ended, and its writes are visible; at once if
// this one was not launched to overlap with it.
__device__ __forceinline__ void gg_wait_grid() {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

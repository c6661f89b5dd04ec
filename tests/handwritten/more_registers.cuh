// setmaxnreg.inc: waits until the threads of this warpgroup have so many registers.
template <int count>
__device__ __forceinline__ void gg_more_registers()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(count));
}

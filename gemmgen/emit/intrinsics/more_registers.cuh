// setmaxnreg.inc: `count` registers per thread of the warpgroup (waits until free).
template <int count> __device__ __forceinline__ void gg_more_registers()
{ asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(count)); }

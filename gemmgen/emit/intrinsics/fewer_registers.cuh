// setmaxnreg.dec: `count` registers per thread of the warpgroup.
template <int count> __device__ __forceinline__ void gg_fewer_registers()
{ asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(count)); }

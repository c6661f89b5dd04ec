// setmaxnreg.$change: `count` registers per thread of the warpgroup$how
template <int count>
__device__ __forceinline__ void gg_${way}_registers() {
    asm volatile("setmaxnreg.$change.sync.aligned.u32 %0;" :: "n"(count));
}

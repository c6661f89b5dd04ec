// bar.sync: named barrier `number` for `threads` threads, which are whole warps.
__device__ __forceinline__ void gg_sync_warps(int number, int threads)
{ asm volatile("bar.sync %0, %1;" :: "r"(number), "r"(threads) : "memory"); }

// bar.sync: waits for `threads` of the block at its barrier `number`; they are whole warps.
__device__ __forceinline__ void gg_sync_warps(int number, int threads) {
    asm volatile("bar.sync %0, %1;" :: "r"(number), "r"(threads) : "memory");
}

// Counts up, from `last` to 0 again, and gives the count before.  What the block wrote before its
// last barrier is seen behind the next one by every block that counts later.
__device__ __forceinline__ unsigned gg_count_in(unsigned *counter, unsigned last)
{
    unsigned before;
    asm volatile("atom.acq_rel.gpu.inc.u32 %0, [%1], %2;"
                 : "=r"(before) : "l"(counter), "r"(last) : "memory");
    return before;
}

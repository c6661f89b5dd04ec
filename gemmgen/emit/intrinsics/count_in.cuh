// atom.inc: atomic increment that wraps to 0 after `last`; returns the old value.
// Acquire-release at GPU scope.
__device__ __forceinline__ unsigned gg_count_in(unsigned *counter, unsigned last) {
    unsigned before;
    asm volatile("atom.acq_rel.gpu.inc.u32 %0, [%1], %2;"
                 : "=r"(before) : "l"(counter), "r"(last) : "memory");
    return before;
}

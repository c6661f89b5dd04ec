// wmma.load.$side: loads a warp's 16 x 16 fragment of $operand from shared memory; its $lines begin
// `pitch` elements apart.
__device__ __forceinline__ void gg_wmma_load_${side}_${line}_bf16(
    unsigned (&fragment)[4], const unsigned short *source, int pitch)
{
    const unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(source));
    asm volatile("wmma.load.$side.sync.aligned.$line.m16n16k16.shared.bf16 "
                 "{%0, %1, %2, %3}, [%4], %5;"
                 : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
                 : "r"(from), "r"(pitch) : "memory");
}

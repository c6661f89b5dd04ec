// wgmma.mma_async: c, d = a * b + (accumulate ? c, d : 0) for a warpgroup's 64 x $n tile; operands
// of $operands in shared memory, $how.  A thread has two adjacent accumulators in every
// 8 columns, in row `c` and, 8 rows below, in row `d`.
__device__ __forceinline__ void gg_wgmma_m64n${n}k${k}_$name$suffix(
    $type *c, $type *d, unsigned long long a, unsigned long long b, int accumulate)
{
    asm volatile("{\n.reg .pred more;\nsetp.ne.b32 more, %$accumulate, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n${n}k$k.$types {"
        $numbers}, "
        "%$a, %$b, more$factors;\n}" :
    $outputs
        : "l"(a), "l"(b), "r"(accumulate));
}

// wgmma.mma_async: c, d = a * b + (accumulate ? c, d : 0), 64 x $n of a warpgroup, asynchronously;
// operands of $operands in shared memory, $how.  A thread has two neighbouring sums
// of each 8 columns, in each of two rows that are 8 apart: `c`, and below it `d`.
__device__ __forceinline__ void gg_wgmma_m64n${n}k${k}_$name$turned(
    $type *c, $type *d, unsigned long long a, unsigned long long b, int accumulate)
{
    asm volatile("{\n.reg .pred more;\nsetp.ne.b32 more, %$accumulate, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n${n}k$k.$types {"
        $numbers}, "
        "%$a, %$b, more$factors;\n}" :
    $outputs
        : "l"(a), "l"(b), "r"(accumulate));
}

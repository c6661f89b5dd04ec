// cp.async.$cache: asynchronous copy of $bytes bytes from global to shared memory: `valid` bytes of
// the source, then zeros.
// `policy` is their L2 eviction priority.
__device__ __forceinline__ void gg_copy_async_$bytes(
    $type *target, const $type *source, int valid, unsigned long long policy)
{
    unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(target));
    // all bytes in order: with a policy, ptxas must not fold a uniform part into the address
    asm("prmt.b32 %0, %0, %0, 0x3210;" : "+r"(to));
    asm volatile("cp.async.$cache.shared.global.L2::cache_hint [%0], [%1], $bytes, %2, %3;"
                 :: "r"(to), "l"(source), "r"(valid), "l"(policy) : "memory");
}

// cp.async.$cache: asynchronous copy of $bytes bytes from global to shared memory: `valid` bytes of
// the source, then zeros.
__device__ __forceinline__ void gg_copy_async_$bytes(
    $type *target, const $type *source, int valid)
{
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(target));
    asm volatile("cp.async.$cache.shared.global [%0], [%1], $bytes, %2;"
                 :: "r"(to), "l"(source), "r"(valid) : "memory");
}

// cp.async.$cache: asynchronous copy of $bytes bytes from global to shared memory: `valid` bytes of
// the source, then zeros.$note
__device__ __forceinline__ void gg_copy_async_$bytes(
    $type *target, const $type *source, int valid$parameter)
{
    ${constant}unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(target));$copied
    asm volatile("cp.async.$cache.shared.global$hint [%0], [%1], $bytes, %2$policy;"
                 :: "r"(to), "l"(source), "r"(valid)$input : "memory");
}

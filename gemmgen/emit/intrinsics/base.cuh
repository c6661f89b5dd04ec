// The same pointer; what is added to it stays a constant of the instruction that uses it.
__device__ __forceinline__ const $type *gg_base(const $type *pointer)
{
    asm("" : "+l"(pointer));
    return pointer;
}

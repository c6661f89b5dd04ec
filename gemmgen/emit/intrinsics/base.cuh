// Hides the pointer's origin from the optimizer, so that constant offsets stay immediate operands.
__device__ __forceinline__ const $type *gg_base(const $type *pointer) {
    asm("" : "+l"(pointer));
    return pointer;
}

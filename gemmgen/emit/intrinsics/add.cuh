// red.add: atomic addition that returns nothing, relaxed, at GPU scope.
__device__ __forceinline__ void gg_add($type *target, $type value)
{ asm volatile("red.relaxed.gpu.add.$dtype [%0], %1;"
               :: "l"(target), "$register"(value) : "memory"); }

// cvt.rni.sat.s8.f32: float to the nearest integer, ties to even, clamped to -128..127; NaN
// becomes 0.
__device__ __forceinline__ signed char gg_to_i8(float number) {
    int integer;
    asm("cvt.rni.sat.s8.f32 %0, %1;" : "=r"(integer) : "f"(number));
    return static_cast<signed char>(integer);
}

// The bits of the f16 nearest to a number, ties to even.
__device__ __forceinline__ unsigned short gg_to_f16(float number)
{
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(number));
    return bits;
}

// cvt.rn.satfinite.e4m3x2.f32: float to e4m3 bits, to nearest even, at most +-448.
__device__ __forceinline__ unsigned char gg_to_e4m3(float number) {
    unsigned short pair;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(number));
    return static_cast<unsigned char>(pair);
}

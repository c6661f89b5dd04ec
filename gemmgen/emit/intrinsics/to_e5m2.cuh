// cvt.rn.satfinite.e5m2x2.f32: float to e5m2 bits, to nearest even, at most +-57344.
__device__ __forceinline__ unsigned char gg_to_e5m2(float number) {
    unsigned short pair;
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(number));
    return static_cast<unsigned char>(pair);
}

// cvt.rn.f16x2.e5m2x2, cvt.f32.f16: e5m2 bits to float, exactly.
__device__ __forceinline__ float gg_from_e5m2(unsigned char bits) {
    float number;
    asm("{\n.reg .b32 pair;\n.reg .b16 low, high;\n"
        "cvt.rn.f16x2.e5m2x2 pair, %1;\nmov.b32 {low, high}, pair;\ncvt.f32.f16 %0, low;\n}"
        : "=f"(number) : "h"(static_cast<unsigned short>(bits)));
    return number;
}

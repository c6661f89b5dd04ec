// testp.finite: whether a number is finite.
__device__ __forceinline__ bool gg_is_finite(float number) {
    int finite;
    asm("{\n.reg .pred found;\n"
        "testp.finite.f32 found, %1;\n"
        "selp.b32 %0, 1, 0, found;\n}"
        : "=r"(finite) : "f"(number));
    return finite != 0;
}

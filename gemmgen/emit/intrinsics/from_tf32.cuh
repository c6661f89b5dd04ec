// cvt.rna.tf32.f32: float rounded to tf32, 10 bits after the point; ties away from zero.
__device__ __forceinline__ float gg_from_tf32(float number) {
    float rounded;
    asm("{\n"
        ".reg .b32 bits;\n"
        "cvt.rna.tf32.f32 bits, %1;\n"
        "mov.b32 %0, bits;\n"
        "}" : "=f"(rounded) : "f"(number));
    return rounded;
}

// Splits $numbers floats into three bf16 terms each, a pair per register: a term is the rest of the
// float, rounded to nearest even (cvt.rn.bf16x2.f32), and is subtracted exactly.
__device__ __forceinline__ void gg_split_x$count(
    unsigned *high, unsigned *middle, unsigned *low, const unsigned *numbers)
{
    unsigned *const terms[] = {high, middle, low};
    #pragma unroll
    for (int i = 0; i < $count; ++i) {
        float left[2], rounded[2];
        asm("mov.b32 %0, %1;" : "=f"(left[0]) : "r"(numbers[2 * i]));
        asm("mov.b32 %0, %1;" : "=f"(left[1]) : "r"(numbers[2 * i + 1]));
        #pragma unroll
        for (int term = 0; term < 3; ++term) {
            unsigned &pair = terms[term][i];
            asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(left[1]), "f"(left[0]));
            asm("mov.b32 %0, %1;" : "=f"(rounded[0]) : "r"(pair << 16));
            asm("mov.b32 %0, %1;" : "=f"(rounded[1]) : "r"(pair & 0xffff0000));
            left[0] -= rounded[0], left[1] -= rounded[1];
        }
    }
}

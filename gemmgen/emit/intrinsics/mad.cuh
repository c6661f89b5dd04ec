// mad.lo.s32: the lower 32 bits of a * b + c (wraps).
__device__ __forceinline__ int gg_mad(int a, int b, int c)
{ int sum; asm("mad.lo.s32 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(c)); return sum; }

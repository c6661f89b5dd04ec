// The value of the lane `delta` further; behind the last, its own; all lanes of the warp call it together.
__device__ __forceinline__ double gg_shuffle_down(double value, int delta)
{
    double result;
    asm volatile("{\n"
                 ".reg .b32 low, high;\n"
                 "mov.b64 {low, high}, %1;\n"
                 "shfl.sync.down.b32 low, low, %2, 0x1f, 0xffffffff;\n"
                 "shfl.sync.down.b32 high, high, %2, 0x1f, 0xffffffff;\n"
                 "mov.b64 %0, {low, high};\n"
                 "}" : "=d"(result) : "d"(value), "r"(delta));
    return result;
}

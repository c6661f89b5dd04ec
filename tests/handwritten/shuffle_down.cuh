// The value of the lane `delta` further; behind the last, its own; all lanes of the warp call it together.
__device__ __forceinline__ float gg_shuffle_down(float value, int delta)
{
    float result;
    asm volatile("shfl.sync.down.b32 %0, %1, %2, 0x1f, 0xffffffff;"
                 : "=f"(result) : "f"(value), "r"(delta));
    return result;
}

// shfl.sync.bfly: the value that lane `lane ^ lane_mask` passes; all 32 lanes must call it.
__device__ __forceinline__ float gg_shuffle_xor(float value, int lane_mask) {
    float result;
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;"
                 : "=f"(result) : "f"(value), "r"(lane_mask));
    return result;
}

// shfl.sync.bfly of both halves: the value that lane `lane ^ lane_mask` passes; all 32 lanes must
// call it.
__device__ __forceinline__ double gg_shuffle_xor(double value, int lane_mask) {
    double result;
    asm volatile("{\n"
                 ".reg .b32 low, high;\n"
                 "mov.b64 {low, high}, %1;\n"
                 "shfl.sync.bfly.b32 low, low, %2, 0x1f, 0xffffffff;\n"
                 "shfl.sync.bfly.b32 high, high, %2, 0x1f, 0xffffffff;\n"
                 "mov.b64 %0, {low, high};\n"
                 "}" : "=d"(result) : "d"(value), "r"(lane_mask));
    return result;
}

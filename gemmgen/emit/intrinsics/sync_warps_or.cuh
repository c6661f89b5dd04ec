// bar.red.or: named barrier `number` for `threads` threads, which are whole warps; whether the
// value is true in any of them.
__device__ __forceinline__ bool gg_sync_warps_or(int number, int threads, bool value) {
    int any;
    asm volatile("{\n.reg .pred own, found;\n"
                 "setp.ne.b32 own, %3, 0;\n"
                 "bar.red.or.pred found, %1, %2, own;\n"
                 "selp.b32 %0, 1, 0, found;\n}"
                 : "=r"(any) : "r"(number), "r"(threads), "r"(static_cast<int>(value)) : "memory");
    return any != 0;
}

// wmma.store.d: stores a warp's 16 x 16 accumulator fragment to shared memory; its $lines are
// `pitch` elements apart.
__device__ __forceinline__ void gg_wmma_store_$line(
    float *target, const float (&sum)[8], int pitch)
{
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(target));
    asm volatile("wmma.store.d.sync.aligned.$line.m16n16k16.shared.f32 [%0], "
                 "{%2, %3, %4, %5, %6, %7, %8, %9}, %1;"
                 :: "r"(to), "r"(pitch),
                    "f"(sum[0]), "f"(sum[1]), "f"(sum[2]), "f"(sum[3]),
                    "f"(sum[4]), "f"(sum[5]), "f"(sum[6]), "f"(sum[7])
                 : "memory");
}

// wmma.mma: acc += a * b for a warp's 16 x 16 fragments, loaded as $a_lines of A and $b_lines of B.
__device__ __forceinline__ void gg_wmma_multiply_${a_line}_${b_line}_f16(
    float (&sum)[8], const unsigned (&a)[8], const unsigned (&b)[8])
{
    asm volatile("wmma.mma.sync.aligned.$a_line.$b_line.m16n16k16.f32.f32 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7}, "
                 "{%8, %9, %10, %11, %12, %13, %14, %15}, "
                 "{%16, %17, %18, %19, %20, %21, %22, %23}, "
                 "{%0, %1, %2, %3, %4, %5, %6, %7};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]),
                   "+f"(sum[4]), "+f"(sum[5]), "+f"(sum[6]), "+f"(sum[7])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]),
                   "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7]),
                   "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]),
                   "r"(b[4]), "r"(b[5]), "r"(b[6]), "r"(b[7]));
}

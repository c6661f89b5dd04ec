// ldmatrix.x$count$trans: a warp loads $number of $matrix, each to a register
// of every lane$how.  Lane 8 * i + r names row r of matrix i: 16 bytes at a multiple of 16.
__device__ __forceinline__ void gg_ldmatrix_x$count$suffix(
    unsigned *fragment, const $type *row)
{
    const unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x$count$trans.shared.b16 {$numbers}, [%$count];"
                 : $outputs
                 : "r"(from) : "memory");
}

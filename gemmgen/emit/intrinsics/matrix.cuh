// The descriptor of an operand of wgmma that lies along k in rows of $bytes bytes, swizzled by the
// copy engine; `stride` bytes lie between 8 of them and the next 8.  A step along k adds its
// bytes / 16.
__device__ __forceinline__ unsigned long long gg_matrix_${bytes}B(const void *first,
                                                              int stride = $group)
{
    const unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(first));
    return (from & 0x3ffff) >> 4 | 1ULL << 16 |
           static_cast<unsigned long long>(stride >> 4) << 32 | ${mode}ULL << 62;
}

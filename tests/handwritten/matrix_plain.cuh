// The descriptor of an operand of wgmma that lies along k in columns of 16 bytes, each `column` bytes
// after the one before it.
__device__ __forceinline__ unsigned long long gg_matrix_plain(const void *first, int column)
{
    const unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(first));
    return (from & 0x3ffff) >> 4 | static_cast<unsigned long long>(column >> 4) << 16 | 128ULL / 16 << 32;
}

// The matrix descriptor of an MN-major wgmma operand with the $bytes-byte swizzle of TMA; swizzle
// atom columns are `column_bytes` apart.  A step along k adds its rows' bytes / 16.
__device__ __forceinline__ unsigned long long gg_matrix_${bytes}B_mn_major(
    const void *first, int column_bytes)
{ return (gg_shared(first) & 0x3ffff) >> 4 |
         static_cast<unsigned long long>(column_bytes >> 4) << 16 |
         ${group}ULL / 16 << 32 | ${mode}ULL << 62; }

// stmatrix.x$count$trans: a warp stores $number of 8 x 8 elements of 16 bits, two of each
// lane$how.  Lane 8 * i + r names row r of matrix i: 16 bytes at a multiple of 16.
__device__ __forceinline__ void gg_stmatrix_x$count$suffix(${gap}unsigned short *row, const unsigned short *pairs)$brace
    const unsigned *const held = reinterpret_cast<const unsigned *>(pairs);
    asm volatile("stmatrix.sync.aligned.m8n8.x$count$trans.shared.b16 [%0], {$numbers};"
                 :: "r"(gg_shared(row)),
                    $inputs : "memory");
}

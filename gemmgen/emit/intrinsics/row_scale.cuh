// The power of two with which the largest magnitude of a row is in [2^14, 2^15), in f16's range;
// 2^126 if it is below 2^-112, 2^-114 if it is infinite.
__device__ __forceinline__ float gg_row_scale(float largest) {
    const int exponent = __float_as_int(largest) >> 23;  // 127 for 1.0f
    return __int_as_float((268 - (exponent > 15 ? exponent : 15)) << 23);
}

// runtime.h has __nv_bfloat16.

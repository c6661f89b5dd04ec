// runtime.h has __nv_fp8_e4m3 and __nv_fp8_e5m2.

// runtime.h has __half.

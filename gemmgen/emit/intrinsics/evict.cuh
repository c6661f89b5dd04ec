// createpolicy: what is copied by this policy is the $when to leave the L2 cache.
__device__ __forceinline__ unsigned long long gg_evict_$when() {
    unsigned long long policy;
    asm("createpolicy.fractional.L2::evict_$when.b64 %0;" : "=l"(policy));
    return policy;
}

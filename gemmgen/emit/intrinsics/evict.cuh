// createpolicy: an L2 eviction priority: copies with it are evicted $when.
__device__ __forceinline__ unsigned long long gg_evict_$when() {
    unsigned long long policy;
    asm("createpolicy.fractional.L2::evict_$when.b64 %0;" : "=l"(policy));
    return policy;
}

// Models of copies with a policy of L2.  Policies are opaque and change no value; one that
// createpolicy has not made is undefined behavior, and refused.
#pragma once

extern "C" void gg_wrong_policy(unsigned long long policy);

namespace gg_ptx {

constexpr b64 EVICT_FIRST = 0x6c32706f6c696301, EVICT_LAST = 0x6c32706f6c696302;

GG_MODEL void createpolicy_fractional_L2_evict_first_b64(b64 &d) { d = EVICT_FIRST; }
GG_MODEL void createpolicy_fractional_L2_evict_last_b64(b64 &d) { d = EVICT_LAST; }
GG_MODEL void take_policy(b64 policy) {
  if (policy != EVICT_FIRST && policy != EVICT_LAST) gg_wrong_policy(policy);
}
template <long long bytes>
GG_MODEL void cp_async_ca_shared_global_L2_cache_hint(Shared to, Generic from,
                                                      Immediate<bytes> size, b32 valid,
                                                      b64 policy) {
  take_policy(policy);
  cp_async_ca_shared_global(to, from, size, valid);
}
template <long long bytes>
GG_MODEL void cp_async_cg_shared_global_L2_cache_hint(Shared to, Generic from,
                                                      Immediate<bytes> size, b32 valid,
                                                      b64 policy) {
  take_policy(policy);
  cp_async_cg_shared_global(to, from, size, valid);
}

#ifndef GG_NO_TMA
#define GG_BOX_BY_POLICY(rank)                                                                   \
  GG_MODEL void                                                                                  \
  cp_async_bulk_tensor_##rank##d_shared_cluster_global_tile_mbarrier_complete_tx_bytes_L2_cache_hint( \
      Shared to, Generic map, Vector<b32, rank> at, Shared full, b64 policy) {                   \
    take_policy(policy);                                                                         \
    load_box<rank>(to, map, at, full);                                                           \
  }                                                                                              \
  GG_MODEL void                                                                                  \
  cp_async_bulk_tensor_##rank##d_shared_cluster_global_tile_mbarrier_complete_tx_bytes_multicast_cluster_L2_cache_hint( \
      Shared to, Generic map, Vector<b32, rank> at, Shared full, b16 blocks, b64 policy) {       \
    take_policy(policy);                                                                         \
    multicast_box<rank>(to, map, at, full, blocks);                                              \
  }
GG_BOX_BY_POLICY(1)
GG_BOX_BY_POLICY(2)
GG_BOX_BY_POLICY(3)
GG_BOX_BY_POLICY(4)
GG_BOX_BY_POLICY(5)
#undef GG_BOX_BY_POLICY
#endif

}  // namespace gg_ptx

// Models of the PTX instructions of TMA and of barriers in shared memory, as those
// of ptx.h.  A program that has none of them is the same without this file.
#pragma once

// The runner's part: mbarriers.cpp, box_loads.cpp, box_stores.cpp, register_pool.cpp, clusters.cpp,
// cluster_barrier.cpp.
extern "C" {
void gg_mbarrier_init(unsigned barrier, unsigned count);
void gg_mbarrier_arrive(unsigned barrier, unsigned bytes);
void gg_mbarrier_arrive_at(unsigned address);
void gg_mbarrier_expect(unsigned barrier, unsigned bytes);
bool gg_mbarrier_try(unsigned barrier, unsigned parity);
bool gg_mbarrier_test(unsigned barrier, unsigned parity);
void gg_mbarrier_fence();
void gg_tma_fence();
void gg_tma_load(unsigned target, const void *map, const int *at, unsigned rank, unsigned barrier);
void gg_tma_multicast(unsigned target, const void *map, const int *at, unsigned rank,
                         unsigned barrier, unsigned mask);
void gg_tma_store(const void *map, const int *at, unsigned rank, unsigned source);
void gg_tma_commit();
void gg_tma_await(int pending);
void gg_wait_preceding_grid();
void gg_registers_change(unsigned count, bool raises);
unsigned gg_special_ctarank();
unsigned gg_map_address(unsigned offset, unsigned rank);
void gg_barrier_cluster_arrive(bool releases, bool is_aligned);
void gg_barrier_cluster_wait(bool is_aligned);
}

namespace gg_ptx {

struct Sink {};

// Barriers in shared memory.

GG_MODEL void mbarrier_init_shared_cta_b64(Shared barrier, b32 count) {
  gg_mbarrier_init(barrier.offset, count);
}
GG_MODEL void mbarrier_arrive_shared_cta_b64(Sink, Shared barrier) {
  gg_mbarrier_arrive(barrier.offset, 0);
}
GG_MODEL void mbarrier_arrive_expect_tx_shared_cta_b64(Sink, Shared barrier, b32 bytes) {
  gg_mbarrier_arrive(barrier.offset, bytes);
}
GG_MODEL void mbarrier_expect_tx_relaxed_cta_shared_cta_b64(Shared barrier, b32 bytes) {
  gg_mbarrier_expect(barrier.offset, bytes);
}
GG_MODEL void mbarrier_try_wait_parity_shared_cta_b64(pred &d, Shared barrier, b32 parity) {
  d = gg_mbarrier_try(barrier.offset, parity);
}
GG_MODEL void mbarrier_test_wait_parity_shared_cta_b64(pred &d, Shared barrier, b32 parity) {
  d = gg_mbarrier_test(barrier.offset, parity);
}
GG_MODEL void fence_mbarrier_init_release_cluster() { gg_mbarrier_fence(); }
GG_MODEL void fence_proxy_async_shared_cta() { gg_tma_fence(); }

// Blocks of a cluster: an address in the shared memory of one of them, their barrier.

GG_MODEL SpecialRegister cluster_ctarank() { return {gg_special_ctarank()}; }
GG_MODEL void mapa_shared_cluster_u32(b32 &d, b32 a, b32 rank) { d = gg_map_address(a, rank); }
GG_MODEL void mbarrier_arrive_shared_cluster_b64(Sink, Shared barrier) {
  gg_mbarrier_arrive_at(barrier.offset);
}
GG_MODEL void barrier_cluster_arrive_release() { gg_barrier_cluster_arrive(true, false); }
GG_MODEL void barrier_cluster_arrive_release_aligned() { gg_barrier_cluster_arrive(true, true); }
GG_MODEL void barrier_cluster_arrive_relaxed() { gg_barrier_cluster_arrive(false, false); }
GG_MODEL void barrier_cluster_arrive_relaxed_aligned() { gg_barrier_cluster_arrive(false, true); }
GG_MODEL void barrier_cluster_wait_acquire() { gg_barrier_cluster_wait(false); }
GG_MODEL void barrier_cluster_wait_acquire_aligned() { gg_barrier_cluster_wait(true); }

// Boxes of a tensor; coordinates innermost first.

template <int rank> GG_MODEL void load_box(Shared to, Generic map, Vector<b32, rank> at, Shared full) {
  int from[rank];
  for (int i = 0; i < rank; ++i) from[i] = static_cast<int>(*at.elements[i]);
  gg_tma_load(to.offset, pointer_to<void>(map), from, rank, full.offset);
}
template <int rank>
GG_MODEL void multicast_box(Shared to, Generic map, Vector<b32, rank> at, Shared full, b16 blocks) {
  int from[rank];
  for (int i = 0; i < rank; ++i) from[i] = static_cast<int>(*at.elements[i]);
  gg_tma_multicast(to.offset, pointer_to<void>(map), from, rank, full.offset, blocks);
}
template <int rank> GG_MODEL void store_box(Generic map, Vector<b32, rank> at, Shared from) {
  int to[rank];
  for (int i = 0; i < rank; ++i) to[i] = static_cast<int>(*at.elements[i]);
  gg_tma_store(pointer_to<void>(map), to, rank, from.offset);
}
#define GG_BOX(rank)                                                                             \
  GG_MODEL void                                                                                  \
  cp_async_bulk_tensor_##rank##d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(          \
      Shared to, Generic map, Vector<b32, rank> at, Shared full) {                               \
    load_box<rank>(to, map, at, full);                                                           \
  }                                                                                              \
  GG_MODEL void                                                                                  \
  cp_async_bulk_tensor_##rank##d_shared_cluster_global_tile_mbarrier_complete_tx_bytes_multicast_cluster( \
      Shared to, Generic map, Vector<b32, rank> at, Shared full, b16 blocks) {                   \
    multicast_box<rank>(to, map, at, full, blocks);                                              \
  }                                                                                              \
  GG_MODEL void cp_async_bulk_tensor_##rank##d_global_shared_cta_tile_bulk_group(                \
      Generic map, Vector<b32, rank> at, Shared from) {                                          \
    store_box<rank>(map, at, from);                                                              \
  }
GG_BOX(1)
GG_BOX(2)
GG_BOX(3)
GG_BOX(4)
GG_BOX(5)

GG_MODEL void cp_async_bulk_commit_group() { gg_tma_commit(); }
template <long long pending> GG_MODEL void cp_async_bulk_wait_group_read(Immediate<pending>) {
  static_assert(pending >= 0, "a number of groups");
  gg_tma_await(pending);
}
template <long long pending> GG_MODEL void cp_async_bulk_wait_group(Immediate<pending>) {
  static_assert(pending >= 0, "a number of groups");
  gg_tma_await(pending);
}

// Kernels that overlap: a run has one kernel, and checks what its threads do before they wait.

GG_MODEL void griddepcontrol_wait() { gg_wait_preceding_grid(); }
GG_MODEL void griddepcontrol_launch_dependents() {}

// Registers of a warpgroup.

template <long long count> GG_MODEL void setmaxnreg_inc_sync_aligned_u32(Immediate<count>) {
  static_assert(count >= 24 && count <= 256 && count % 8 == 0, "24 to 256, a multiple of 8");
  gg_registers_change(count, true);
}
template <long long count> GG_MODEL void setmaxnreg_dec_sync_aligned_u32(Immediate<count>) {
  static_assert(count >= 24 && count <= 256 && count % 8 == 0, "24 to 256, a multiple of 8");
  gg_registers_change(count, false);
}

}  // namespace gg_ptx

// Shared memory of the blocks of a cluster, and when it ends: with the last thread of its block.
// Before that every access by another block must have happened, in any order of threads.

#include "clusters.h"

#include <cstdio>
#include <cstring>

#include "clocks.h"

namespace gg {
namespace {

constexpr unsigned WINDOW_BITS = 24;  // the rank and 1 are above them in an address of the cluster

// A thread's latest access of another block's memory, at its time.
struct Reach {
  uint32_t time;
  uint32_t offset;
  Call by;
};

unsigned char *kept[MAX_CLUSTER];   // of the blocks that do not run
Reach reaches[MAX_CLUSTER][MAX_RESIDENT];  // into each block, of each thread; time 0 is never
unsigned left[MAX_CLUSTER];         // threads
Clock departed[MAX_CLUSTER];        // what those knew

void reserve_memory() {
  if (kept[0] != nullptr || state.shared_bytes == 0) return;
  for (unsigned rank = 0; rank < state.cluster; ++rank) {
    kept[rank] = static_cast<unsigned char *>(map_memory(state.shared_bytes, "shared memory"));
  }
}

[[noreturn]] void report_ended(const Place &place, const Call &by) {
  stop_at(ENDED, by, "shared:%u of block %u, whose threads may all have left", place.offset,
          state.first_block + place.rank);
}

// What other blocks have done to the memory of the block, it must know of.
void check_end(unsigned rank) {
  for (unsigned thread = 0; thread < state.residents; ++thread) {
    const Reach &reach = reaches[rank][thread];
    if (reach.time == 0) continue;
    if (departed[rank].seen[thread] < reach.time) report_ended({rank, reach.offset}, reach.by);
  }
}

}  // namespace

Place place_of(uint32_t address) {
  const uint32_t mark = address >> WINDOW_BITS;
  if (mark == 0 || mark > state.cluster) return {state.rank, address};
  return {mark - 1, address & ((1u << WINDOW_BITS) - 1)};
}

void begin_cluster(unsigned first_block) {
  state.first_block = first_block;
  state.rank = 0;
  blockIdx = {first_block, 0, 0};
  poison_shared();
  begin_cluster_barrier();
  if (state.cluster == 1) return;
  reserve_memory();
  for (unsigned rank = 0; rank < state.cluster; ++rank) {
    if (state.shared_bytes != 0) memset(kept[rank], 0xff, state.shared_bytes);
    memset(reaches[rank], 0, state.residents * sizeof *reaches[rank]);
    clear(departed[rank]);
    left[rank] = 0;
  }
}

void enter_block(unsigned rank) {
  if (rank == state.rank) return;
  if (state.shared_bytes != 0) {
    memcpy(kept[state.rank], state.shared, state.shared_bytes);
    memcpy(state.shared, kept[rank], state.shared_bytes);
  }
  state.rank = rank;
  blockIdx.x = state.first_block + rank;
}

unsigned char *memory_of(unsigned rank) { return rank == state.rank ? state.shared : kept[rank]; }

void leave_block() {
  leave_cluster_barrier();
  if (state.cluster == 1) return;
  const unsigned rank = state.rank;
  release(departed[rank]);
  if (++left[rank] < state.threads) return;
  end_loads(rank);
  if (keeps_clocks()) check_end(rank);
}

void check_reach(const Place &place, const Call &by) {
  if (place.rank != state.rank && left[place.rank] == state.threads) report_ended(place, by);
}

void note_reach(const Place &place, const Call &by) {
  if (place.rank == state.rank) return;
  reaches[place.rank][by.thread] = {state.time[by.thread], place.offset, by};
}

Whose whose(unsigned rank, const Call &by) {
  Whose found = {};
  const uint32_t block = state.first_block + rank;
  if (block != block_of(by.thread)) {
    snprintf(found.text, sizeof found.text, " of block %u", block);
  }
  return found;
}

}  // namespace gg

extern "C" unsigned gg_special_ctarank() { return gg::state.rank; }

extern "C" unsigned gg_map_address(unsigned offset, unsigned rank) {
  using namespace gg;
  const Call by = call_at(__builtin_return_address(0));
  if (rank >= state.cluster) {
    stop_at(WRONG_BARRIER, by, "mapa to block %u of a cluster of %u", rank, state.cluster);
  }
  if (offset >= state.shared_bytes) {
    stop_at(BOUNDS, by, "mapa of an address that is not of the block's shared memory");
  }
  return (rank + 1) << WINDOW_BITS | offset;
}

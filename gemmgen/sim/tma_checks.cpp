// Barriers and TMA among what happens before what: the copies that a barrier counts are
// one actor of clocks.h, which ends with each phase, and the stores of a thread are another.

#include "tma_checks.h"

#include <cstring>

#include "clocks.h"
#include "shadow.h"

namespace gg {
namespace {

Clock arrived[MAX_BARRIERS], ended[MAX_BARRIERS];  // what arrivals have left; of ended phases
uint32_t landed[MAX_BARRIERS];  // the time of the barrier's actor at the end of its last phase

// An actor beside the threads of the block of this rank.
unsigned beside(unsigned rank, unsigned number) {
  return state.residents + rank * BESIDE + number;
}

unsigned started(unsigned actor, unsigned thread) {
  state.starter[actor - state.residents] = static_cast<uint16_t>(thread);
  return actor;
}

// More barriers or threads than there are actors share them: some races are then not found.
unsigned loader(const MBarrier &barrier) {
  return beside(barrier.rank, barrier.of_block % OF_BARRIERS);
}
unsigned storer(const BoxCopy &copy) {
  const unsigned number = OF_BARRIERS + copy.by.thread / WARP % OF_STORERS;
  return started(beside(copy.rank, number), copy.by.thread);
}

// The elements of a tensor that TMA reads or writes, and what it writes after rows.
void check_inside(const BoxCopy &copy, bool write) {
  for (uint32_t i = 0; i < box_rows(copy.box); ++i) {
    const BoxRow row = box_row(copy.box, i);
    if (row.inside == 0) continue;
    check_access({row.first, row.inside, write, copy.by.pc, false, BESIDE_THREAD}, state.thread);
    if (!write || row.padding == 0) continue;
    unsigned char *const end = row.first + row.inside;
    check_access({end, row.padding, true, copy.by.pc, false, BESIDE_THREAD}, state.thread);
  }
}

void check_target(const BoxCopy &copy, unsigned actor) {
  unsigned char *const first = state.shared + copy.shared;
  check_access({first, copy.bytes, true, copy.by.pc, false, BESIDE_THREAD, copy.rank}, actor);
}

// What a store reads of shared memory: of what is outside the tensor nothing is ever seen.
void check_source(const BoxCopy &copy, unsigned actor) {
  const uint32_t swizzle = copy.box.swizzle;
  for (uint32_t i = 0; i < box_rows(copy.box); ++i) {
    const BoxRow row = box_row(copy.box, i);
    const uint32_t begin = copy.shared + row.offset + row.before, end = begin + row.inside;
    for (uint32_t at = begin, next; at < end; at = next) {
      next = swizzle == NO_SWIZZLE ? end : at / UNIT * UNIT + UNIT;  // chunks change places
      if (next > end) next = end;
      unsigned char *const first = state.shared + swizzled(at, swizzle);
      check_access({first, next - at, false, copy.by.pc, false, BESIDE_THREAD, copy.rank}, actor);
    }
  }
}

}  // namespace

void begin_barrier(const MBarrier &barrier) {
  clear(arrived[barrier.number]);
  clear(ended[barrier.number]);
  landed[barrier.number] = 0;
}

void leave_clock(const MBarrier &barrier) { release(arrived[barrier.number]); }

void end_phase(const MBarrier &barrier) {
  const unsigned number = barrier.number;
  keep(ended[number], arrived[number]);
  landed[number] = state.time[loader(barrier)]++;
}

void take_clock(const MBarrier &barrier) {
  acquire(ended[barrier.number]);
  const unsigned actor = loader(barrier);
  if (!has_seen(actor, landed[barrier.number])) see(actor, landed[barrier.number]);
}

void check_barrier(const MBarrier &barrier, bool changes, const Call &by) {
  unsigned char *const word = state.shared + barrier.offset;
  check_access({word, MBARRIER_BYTES, changes, by.pc, false, false, barrier.rank}, state.thread);
}

void check_load(const BoxCopy &copy, const MBarrier &barrier) {
  check_inside(copy, false);
  check_target(copy, started(loader(barrier), state.thread));
  begin_copy(copy.shared, copy.bytes, copy.rank);
}

void check_landed(const BoxCopy &copy, const MBarrier &barrier) {
  end_copy(copy.shared, copy.bytes, copy.rank, loader(barrier));
}

uint32_t check_store(const BoxCopy &copy) {
  const unsigned actor = storer(copy);
  check_source(copy, actor);
  check_inside(copy, true);
  return state.time[actor]++;
}

void check_awaited(const BoxCopy &copy, uint32_t time) { see(storer(copy), time); }

void publish() { fence_async(); }

}  // namespace gg

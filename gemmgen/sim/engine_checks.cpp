// Barriers and the copy engine among what happens before what: the copies that a barrier counts are
// one actor of clocks.h, which ends with each phase, and the stores of a thread are another.

#include "engine_checks.h"

#include <cstring>

#include "clocks.h"
#include "shadow.h"

namespace gg {
namespace {

constexpr unsigned OF_BARRIERS = 24, OF_THREADS = BESIDE - OF_BARRIERS;

Clock arrived[MAX_BARRIERS], ended[MAX_BARRIERS];  // what arrivals have left; of ended phases
uint32_t landed[MAX_BARRIERS];  // the time of the barrier's actor at the end of its last phase

unsigned started(unsigned actor, unsigned thread) {
  state.starter[actor] = static_cast<uint16_t>(thread);
  return state.threads + actor;
}

// More barriers or threads than there are actors share them: some races are then not found.
unsigned loader(const MBarrier &barrier) {
  return started(barrier.number % OF_BARRIERS, state.thread);
}
unsigned storer(unsigned thread) {
  return started(OF_BARRIERS + thread / WARP % OF_THREADS, thread);
}

// The elements of a tensor that the engine reads or writes.
void check_inside(const BoxCopy &copy, bool write) {
  for (uint32_t i = 0; i < box_rows(copy.box); ++i) {
    const BoxRow row = box_row(copy.box, i);
    if (row.inside == 0) continue;
    check_access({row.first, row.inside, write, copy.by.pc, false, true}, state.thread);
  }
}

void check_shared_box(const BoxCopy &copy, bool write, unsigned actor) {
  check_access({state.shared + copy.shared, copy.bytes, write, copy.by.pc, false, true}, actor);
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
  memcpy(&ended[number], &arrived[number], sizeof *ended);
  landed[number] = state.time[state.threads + number % OF_BARRIERS]++;
}

void take_clock(const MBarrier &barrier) {
  acquire(ended[barrier.number]);
  const unsigned actor = state.threads + barrier.number % OF_BARRIERS;
  if (!has_seen(actor, landed[barrier.number])) see(actor, landed[barrier.number]);
}

void check_barrier(const MBarrier &barrier, bool changes, const Call &by) {
  check_access({state.shared + barrier.offset, MBARRIER_BYTES, changes, by.pc}, state.thread);
}

void check_load(const BoxCopy &copy, const MBarrier &barrier) {
  check_inside(copy, false);
  check_shared_box(copy, true, loader(barrier));
  begin_copy(copy.shared, copy.bytes);
}

void check_landed(const BoxCopy &copy, const MBarrier &barrier) {
  end_copy(copy.shared, copy.bytes, state.threads + barrier.number % OF_BARRIERS);
}

uint32_t check_store(const BoxCopy &copy) {
  const unsigned actor = storer(copy.by.thread);
  check_shared_box(copy, false, actor);
  check_inside(copy, true);
  return state.time[actor]++;
}

void check_awaited(const BoxCopy &copy, uint32_t time) { see(storer(copy.by.thread), time); }

void publish() { fence_async(); }

}  // namespace gg

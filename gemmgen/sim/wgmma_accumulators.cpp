// The variables of accumulators of multiplications. From the beginning of one they hold NaN; they
// get their values where the text names them after a wait that covers it.

#include "wgmma.h"

namespace gg {
namespace {

constexpr unsigned PLACES = 1024;         // for variables of a thread
constexpr uint32_t UNKNOWN = 0x7fe5a5e5;  // NaN, as a float

struct Variable {
  uint32_t *at;
  uint32_t held;      // the sum, while the variable is UNKNOWN
  uint32_t at_fence;  // what the variable held at the last fence
  uint32_t end;       // multiplications up to the last that changes it
  uint32_t fences;    // of its thread when the text named it; or 0
  bool is_unknown, is_fenced;
};

struct Thread {
  uint32_t block;   // block_interval for which the rest is
  uint32_t waited;  // multiplications
  uint32_t fences;
  unsigned count;
  uint16_t known[PLACES];
  Variable variables[PLACES];
};

Thread *threads;

Thread &own() {
  Thread &mine = threads[state.thread];
  if (mine.block == state.block_interval) return mine;
  for (unsigned i = 0; i < mine.count; ++i) mine.variables[mine.known[i]].at = nullptr;
  mine.block = state.block_interval;
  mine.waited = mine.fences = mine.count = 0;
  return mine;
}

unsigned place_of(const Thread &mine, const uint32_t *at) {
  auto place = static_cast<unsigned>(reinterpret_cast<uintptr_t>(at) / sizeof *at % PLACES);
  while (mine.variables[place].at != nullptr && mine.variables[place].at != at) {
    place = (place + 1) % PLACES;
  }
  return place;
}

}  // namespace

void reserve_accumulators() {
  if (threads != nullptr) return;
  threads = static_cast<Thread *>(map_memory(MAX_RESIDENT * sizeof *threads, "accumulators"));
}

uint16_t take_sum(uint32_t *at, uint32_t end, const Call &by) {
  Thread &mine = own();
  const auto place = static_cast<uint16_t>(place_of(mine, at));
  Variable &sum = mine.variables[place];
  if (sum.at == nullptr) {
    if (mine.count + 1 == PLACES) fault("a thread has accumulators in %u variables", PLACES);
    sum = {at, 0, 0, 0, 0, false, false};
    mine.known[mine.count++] = place;
  }
  const bool is_changed = sum.is_unknown && *at != UNKNOWN;
  if (is_changed && sum.end > mine.waited) {
    stop_at(WRONG_MULTIPLICATION, by, "a sum is written while a multiplication changes it");
  }
  if (!sum.is_unknown || is_changed) {
    if (sum.fences == mine.fences) {
      stop_at(WRONG_MULTIPLICATION, by, "no wgmma.fence after the thread's own use of the accumulators");
    }
    if (sum.is_fenced && sum.at_fence != *at) {
      stop_at(WRONG_MULTIPLICATION, by, "a sum is written after the wgmma.fence");
    }
    sum.held = *at;
  }
  *at = UNKNOWN;
  sum.is_unknown = true;
  sum.is_fenced = false;
  sum.end = end;
  return place;
}

uint32_t &held_accumulator(unsigned thread, uint16_t place) {
  return threads[thread].variables[place].held;
}

void fence_accumulators() {
  Thread &mine = own();
  ++mine.fences;
  for (unsigned i = 0; i < mine.count; ++i) {
    Variable &sum = mine.variables[mine.known[i]];
    sum.at_fence = *sum.at;
    sum.is_fenced = true;
  }
}

void get_accumulators(uint32_t end) { own().waited = end; }

void name_sum(uint32_t *at) {
  Thread &mine = own();
  Variable &sum = mine.variables[place_of(mine, at)];
  if (sum.at != at || !sum.is_unknown || sum.end > mine.waited) return;
  if (*at == UNKNOWN) *at = sum.held;
  sum.is_unknown = false;
  sum.fences = mine.fences;
}

}  // namespace gg

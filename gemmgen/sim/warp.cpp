// Exchanges between a warp's lanes: each deposits bytes, and reads the others' once all 32 have.

#include "runner.h"

#include <cstring>

namespace gg {
namespace {

// Two sets, used in turn: a lane can deposit again while others still read, but is never two
// exchanges ahead, since the next one waits for all.
struct alignas(16) Deposit {
  unsigned char bytes[GG_DEPOSIT];
};
Deposit deposits[2][MAX_THREADS];
unsigned char turn[MAX_THREADS];

void wait(int line) {
  state.warp_line[state.thread] = line != 0 ? line : 1;
  suspend_fiber();
}

[[noreturn]] void report_missing(unsigned waiting, unsigned missing) {
  Finding finding = {};
  finding.kind = DIVERGENT_WARP;
  finding.access = {0, static_cast<uint32_t>(state.warp_line[waiting]), blockIdx.x, waiting, 0};
  const int other = state.warp_line[missing] != 0 ? state.warp_line[missing] : state.line[missing];
  finding.other = {0, static_cast<uint32_t>(other), blockIdx.x, missing, 0};
  report_last(finding);
}

// Whether all lanes of the warp wait, at one line; reports a lane that waits elsewhere.
bool has_met(unsigned first) {
  const unsigned end = first + WARP < state.threads ? first + WARP : state.threads;
  unsigned waiting = end;
  for (unsigned lane = first; lane < end && waiting == end; ++lane) {
    if (state.warp_line[lane] != 0) waiting = lane;
  }
  if (waiting == end) return false;
  if (end - first != WARP) fault("a warp of %u threads waits for its 32 lanes", end - first);
  for (unsigned lane = first; lane < end; ++lane) {
    if (state.warp_line[lane] != state.warp_line[waiting]) report_missing(waiting, lane);
  }
  return true;
}

}  // namespace

bool release_warps() {
  bool any = false;
  for (unsigned first = 0; first < state.threads; first += WARP) {
    const bool met = has_met(first);
    any |= met;
    const unsigned end = first + WARP < state.threads ? first + WARP : state.threads;
    for (unsigned lane = first; lane < end; ++lane) {
      state.released[lane] = met;
      state.warp_line[lane] = 0;
    }
  }
  return any;
}

}  // namespace gg

extern "C" void gg_at(int line) { gg::state.call_line[gg::state.thread] = line; }

extern "C" const unsigned char *gg_exchange(const void *bytes, unsigned size) {
  using namespace gg;
  const unsigned me = state.thread, set = turn[me] ^= 1;
  if (size > GG_DEPOSIT) fault("a lane deposits %u bytes", size);
  memcpy(deposits[set][me].bytes, bytes, size);
  wait(state.call_line[me]);
  return deposits[set][me / WARP * WARP].bytes;
}

extern "C" void gg_warp_barrier(int line) {
  gg::wait(line);
  ++gg::state.epoch[gg::state.thread];
}

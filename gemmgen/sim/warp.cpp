// Exchanges between a warp's lanes: each deposits bytes, and reads the others' once all 32 have.
//
// An instruction with `.sync` waits for the warp's lanes, and so do the models.  One with `.aligned`
// alone does not: its lanes must have converged before.  They have after any wait for all of them,
// and they diverge when some execute an instruction of an emitted function that others do not.

#include "scheduler.h"

#include <cstdio>
#include <cstring>

#include "clocks.h"

namespace gg {
namespace {

// Two sets, used alternately: a lane can deposit again while others still read, but is never two
// exchanges ahead, since the next one waits for all.
struct alignas(16) Deposit {
  unsigned char bytes[GG_DEPOSIT];
};
Deposit deposits[2][MAX_RESIDENT];
unsigned char turn[MAX_RESIDENT];

struct Lane {
  int line;       // at which it waits for its warp, or 0
  bool released;  // all lanes of its warp have come
  bool converged;  // they must have converged before they come
};
Lane lanes[MAX_RESIDENT];

// The calls of a lane since its warp converged.  A loop that repeats one, as those that poll a
// barrier do, counts once: all lanes leave it together or go on to wait for one another.
struct Path {
  uint32_t hash;
  int line, before;  // the latest two
};
Path paths[MAX_RESIDENT];
unsigned waiting;  // lanes of all warps

// What a warp's lanes know at its barriers; two sets alternate: a lane may arrive at the next
// one while others still leave this one.
Clock syncs[MAX_WARPS][2];
unsigned char sync_set[MAX_RESIDENT];

bool is_released(const Wait &wait) { return static_cast<const Lane *>(wait.on)->released; }

void describe(const Wait &, char *text, size_t size) { snprintf(text, size, "all lanes of the warp"); }

constexpr Condition WARP_BARRIER = {is_released, describe};

// Another wait than this one may end without the lanes that wait here.
bool cannot_come(unsigned lane, int line) {
  if (lanes[lane].line != 0) return lanes[lane].line != line;
  return wait_of(lane).condition == nullptr || is_at_block_barrier(lane);
}

[[noreturn]] void report_missing(unsigned waits, unsigned missing) {
  Finding finding = {};
  finding.kind = DIVERGENT_WARP;
  finding.access = access_at(waits, 0, static_cast<uint32_t>(lanes[waits].line), 0);
  const auto other = static_cast<uint32_t>(wait_of(missing).line);
  finding.other = access_at(missing, 0, other, 0);
  report_last(finding);
}

// The lanes wait for one another where they must have converged before.
void check_converged(unsigned first) {
  unsigned apart = first;
  for (unsigned lane = first; lane < first + WARP; ++lane) {
    if (paths[lane].hash != paths[first].hash) apart = lane;
  }
  if (apart == first) return;
  if (paths[apart].before == 0) apart = first;
  Finding finding = {};
  finding.kind = DIVERGENT_WARP;
  const auto line_of = [](int line) { return static_cast<uint32_t>(line); };
  finding.access = access_at(apart, 0, line_of(lanes[apart].line), 0);
  finding.other = access_at(apart, 0, line_of(paths[apart].before), 0);
  snprintf(finding.detail, sizeof finding.detail, "no __syncwarp() between");
  report_last(finding);
}

// Whether all lanes of the warp wait, at one line; reports a lane that cannot come there.
bool has_met(unsigned first, unsigned end) {
  unsigned waits = end;
  for (unsigned lane = first; lane < end && waits == end; ++lane) {
    if (lanes[lane].line != 0) waits = lane;
  }
  if (waits == end) return false;
  if (end - first != WARP) fault("a warp of %u threads waits for its 32 lanes", end - first);
  bool all = true;
  for (unsigned lane = first; lane < end; ++lane) {
    if (cannot_come(lane, lanes[waits].line)) report_missing(waits, lane);
    all &= lanes[lane].line != 0;
  }
  return all;
}

}  // namespace

void meet_warps() {
  for (unsigned first = 0; first < state.residents && waiting != 0; first += WARP) {
    const unsigned end = first + WARP < state.residents ? first + WARP : state.residents;
    if (!has_met(first, end)) continue;
    if (lanes[first].converged) check_converged(first);
    for (unsigned lane = first; lane < end; ++lane) {
      lanes[lane] = {0, true, false};
      paths[lane] = {};
    }
    waiting -= WARP;
  }
}

void meet_lanes(int line, bool converged) {
  Lane &lane = lanes[state.thread];
  lane = {line != 0 ? line : 1, false, converged};
  ++waiting;
  wait_until({&WARP_BARRIER, &lane, 0, lane.line});
}

void converge() { paths[state.thread] = {}; }

}  // namespace gg

extern "C" void gg_at(int line) {
  using namespace gg;
  state.call_line[state.thread] = line;
  Path &path = paths[state.thread];
  if (path.line == line) return;
  path = {path.hash * 31 + static_cast<uint32_t>(line), line, path.line};
}

extern "C" const unsigned char *gg_exchange(const void *bytes, unsigned size) {
  using namespace gg;
  const unsigned me = state.thread, set = turn[me] ^= 1;
  if (size > GG_DEPOSIT) fault("a lane deposits %u bytes", size);
  memcpy(deposits[set][me].bytes, bytes, size);
  meet_lanes(state.call_line[me]);
  return deposits[set][me / WARP * WARP].bytes;
}

extern "C" void gg_warp_barrier(int line) {
  using namespace gg;
  const unsigned me = state.thread;
  Clock &clock = syncs[me / WARP][sync_set[me] ^= 1];
  release(clock);
  meet_lanes(line);
  adopt(clock);
  ++state.time[me];
}

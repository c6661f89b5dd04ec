// Barriers of a block's threads.  `__syncthreads` is barrier 0 with all of them; `bar.sync` is any
// of 16, with as many threads as it says, whole warps.

#include "scheduler.h"

#include <cstdio>
#include <cstring>

#include "clocks.h"

namespace gg {
namespace {

constexpr unsigned BARRIERS = 16;

struct Barrier {
  unsigned threads, arrived;  // in the present phase
  uint32_t phase;
  unsigned first;  // to arrive
  int line;        // at which it waits
  bool diverges;   // another waits at another line
};

// The lanes of a warp, once they have met, take part as one.
struct Part {
  unsigned lanes;  // that have gone on since they met
  uint32_t phase;
};

Barrier barriers[MAX_CLUSTER][BARRIERS];  // of each block
Part parts[MAX_WARPS];
Clock clocks[MAX_CLUSTER][BARRIERS][2];  // of even and odd phases
int votes[MAX_CLUSTER][BARRIERS][2];     // of even and odd phases

unsigned number_of(const Barrier &barrier) {
  return static_cast<unsigned>(&barrier - barriers[0]) % BARRIERS;
}

bool is_over(const Wait &wait) {
  return static_cast<const Barrier *>(wait.on)->phase != wait.number;
}

void describe_block(const Wait &, char *text, size_t size) {
  snprintf(text, size, "all threads of the block");
}

void describe_named(const Wait &wait, char *text, size_t size) {
  const auto &barrier = *static_cast<const Barrier *>(wait.on);
  snprintf(text, size, "barrier %u of %u threads", number_of(barrier), barrier.threads);
}

constexpr Condition BLOCK_BARRIER = {is_over, describe_block};
constexpr Condition NAMED_BARRIER = {is_over, describe_named};

Access at_line(unsigned thread, int line) {
  return access_at(thread, 0, static_cast<uint32_t>(line), 0);
}

[[noreturn]] void report_wrong(const char *detail, int line, const Access &other = {}) {
  Finding finding = {};
  finding.kind = WRONG_BARRIER;
  finding.access = at_line(state.thread, line);
  finding.other = other;
  snprintf(finding.detail, sizeof finding.detail, "%s", detail);
  report_last(finding);
}

// Arrives with the lanes of the running thread's warp.
void arrive_in_clock(unsigned id) {
  const Barrier &barrier = barriers[state.rank][id];
  Clock *phases = clocks[state.rank][id], &clock = phases[barrier.phase % 2];
  if (!has_seen_all(phases[(barrier.phase + 1) % 2])) {
    char detail[96];
    snprintf(detail, sizeof detail,
             "barrier %u is used again by threads that have not waited for its last use", id);
    report_wrong(detail, state.call_line[state.thread], at_line(barrier.first, barrier.line));
  }
  if (barrier.arrived == 0) clear(clock);
  const unsigned first = state.thread / WARP * WARP;
  for (unsigned lane = first; lane < first + WARP; ++lane) release(clock, lane);
}

// `count` threads arrive; returns the phase whose end they wait for.  `is_block`: all threads of
// the block come to one line.
uint32_t arrive(Barrier &barrier, unsigned threads, unsigned count, int line, bool is_block) {
  const uint32_t phase = barrier.phase;
  if (barrier.arrived == 0) {
    barrier = {threads, 0, phase, state.thread, line, false};
  } else if (barrier.threads != threads) {
    char detail[96];
    snprintf(detail, sizeof detail, "barrier %u has %u threads here and %u elsewhere",
             number_of(barrier), threads, barrier.threads);
    report_wrong(detail, line, at_line(barrier.first, barrier.line));
  }
  barrier.arrived += count;
  barrier.diverges |= is_block && line != barrier.line;
  // Those that diverge never meet: the scheduler finds them stuck.
  if (barrier.arrived < threads || barrier.diverges) return phase;
  if (is_block && state.cluster == 1) {
    meet_block();
    ++state.interval;
  }
  barrier.arrived = 0;
  ++barrier.phase;
  votes[state.rank][number_of(barrier)][barrier.phase % 2] = 0;
  return phase;
}

// In a cluster the block's threads are some of those that run, which clocks order.
void wait_for_block(int line) {
  Barrier &barrier = barriers[state.rank][0];
  Clock &clock = clocks[state.rank][0][barrier.phase % 2];
  const bool by_clock = state.cluster > 1;
  if (by_clock && barrier.arrived == 0) clear(clock);
  if (by_clock) release(clock);
  wait_until({&BLOCK_BARRIER, &barrier, arrive(barrier, state.threads, 1, line, true), line});
  converge();
  if (by_clock) adopt(clock);
}

// Returns whether any thread's `value` was true in it.
bool wait_for(unsigned id, unsigned threads, int line, bool value = false) {
  char detail[96];
  if (id >= BARRIERS) {
    snprintf(detail, sizeof detail, "barrier %u of a block's 16, numbered from 0", id);
    report_wrong(detail, line);
  }
  if (threads == 0 || threads % WARP != 0 || threads > state.threads) {
    snprintf(detail, sizeof detail, "barrier %u of %u threads, in a block of %u: whole warps meet",
             id, threads, state.threads);
    report_wrong(detail, line);
  }
  // The phase can't end before the lanes of this warp have met.
  votes[state.rank][id][barriers[state.rank][id].phase % 2] |= value;
  meet_lanes(line);
  Part &part = parts[state.thread / WARP];
  if (part.lanes == 0) {
    arrive_in_clock(id);
    part.phase = arrive(barriers[state.rank][id], threads, WARP, line, false);
  }
  const uint32_t phase = part.phase;
  part.lanes = (part.lanes + 1) % WARP;
  wait_until({&NAMED_BARRIER, &barriers[state.rank][id], phase, line});
  adopt(clocks[state.rank][id][phase % 2]);
  return votes[state.rank][id][phase % 2] != 0;
}

}  // namespace

void begin_block() {
  memset(barriers, 0, sizeof barriers);
  memset(parts, 0, sizeof parts);
  memset(votes, 0, sizeof votes);
  forget_work();
  ++state.interval;
  state.block_interval = state.interval;
}

bool is_at_block_barrier(unsigned thread) {
  return wait_of(thread).condition == &BLOCK_BARRIER && !is_over(wait_of(thread));
}

void check_divergence() {
  for (unsigned thread = 0; thread < state.residents; ++thread) {
    const unsigned of_block = thread / state.threads * state.threads;
    const int line = wait_of(thread).line, first = wait_of(of_block).line;
    if (line == first) continue;
    Finding finding = {};
    finding.kind = DIVERGENT;
    const bool first_waits = first != 0;
    finding.access = first_waits ? at_line(of_block, first) : at_line(thread, line);
    finding.other = first_waits ? at_line(thread, line) : at_line(of_block, first);
    report_last(finding);
  }
}

}  // namespace gg

extern "C" void gg_barrier(int line) { gg::wait_for_block(line); }

extern "C" int gg_barrier_or(int predicate, int line) {
  using namespace gg;
  int &vote = votes[state.rank][0][barriers[state.rank][0].phase % 2];
  vote |= predicate != 0;
  gg::wait_for_block(line);
  return vote;
}

extern "C" void gg_named_barrier(unsigned id, unsigned threads) {
  gg::wait_for(id, threads, gg::state.call_line[gg::state.thread]);
}
extern "C" bool gg_named_barrier_or(unsigned id, unsigned threads, bool value) {
  return gg::wait_for(id, threads, gg::state.call_line[gg::state.thread], value);
}
extern "C" void gg_named_barrier_of_all(unsigned id) { gg_named_barrier(id, gg::state.threads); }

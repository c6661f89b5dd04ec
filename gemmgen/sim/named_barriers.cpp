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

Barrier barriers[BARRIERS];
Part parts[MAX_WARPS];
Clock clocks[BARRIERS][2];  // of the phases in turn
int votes[2];  // of the current barrier interval and of the previous one

bool is_over(const Wait &wait) {
  return static_cast<const Barrier *>(wait.on)->phase != wait.number;
}

void describe_block(const Wait &, char *text, size_t size) {
  snprintf(text, size, "all threads of the block");
}

void describe_named(const Wait &wait, char *text, size_t size) {
  const auto *barrier = static_cast<const Barrier *>(wait.on);
  snprintf(text, size, "barrier %td of %u threads", barrier - barriers, barrier->threads);
}

constexpr Condition BLOCK_MEETS = {is_over, describe_block}, MEETS = {is_over, describe_named};

Access at_line(unsigned thread, int line) {
  return {0, static_cast<uint32_t>(line), blockIdx.x, thread, 0};
}

[[noreturn]] void report_wrong(const char *detail, int line, const Access &other = {}) {
  Finding finding = {};
  finding.kind = WRONG_BARRIER;
  finding.access = at_line(state.thread, line);
  finding.other = other;
  snprintf(finding.detail, sizeof finding.detail, "%s", detail);
  report_last(finding);
}

void begin_interval() {
  ++state.interval;
  votes[state.interval % 2] = 0;
}

// Arrives with the lanes of the running thread's warp.
void arrive_in_clock(unsigned id) {
  const Barrier &barrier = barriers[id];
  Clock &clock = clocks[id][barrier.phase % 2];
  if (!has_seen_all(clocks[id][(barrier.phase + 1) % 2])) {
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
    snprintf(detail, sizeof detail, "barrier %td has %u threads here and %u elsewhere",
             &barrier - barriers, threads, barrier.threads);
    report_wrong(detail, line, at_line(barrier.first, barrier.line));
  }
  barrier.arrived += count;
  barrier.diverges |= is_block && line != barrier.line;
  // Those that diverge never meet: the scheduler finds them stuck.
  if (barrier.arrived < threads || barrier.diverges) return phase;
  if (is_block) {
    meet_block();
    begin_interval();
  }
  barrier.arrived = 0;
  ++barrier.phase;
  return phase;
}

void wait_for_block(int line) {
  Barrier &barrier = barriers[0];
  wait_until({&BLOCK_MEETS, &barrier, arrive(barrier, state.threads, 1, line, true), line});
}

void wait_for(unsigned id, unsigned threads, int line) {
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
  meet_lanes(line);
  Part &part = parts[state.thread / WARP];
  if (part.lanes == 0) {
    arrive_in_clock(id);
    part.phase = arrive(barriers[id], threads, WARP, line, false);
  }
  const uint32_t phase = part.phase;
  part.lanes = (part.lanes + 1) % WARP;
  wait_until({&MEETS, &barriers[id], phase, line});
  adopt(clocks[id][phase % 2]);
}

}  // namespace

void begin_block() {
  memset(barriers, 0, sizeof barriers);
  memset(parts, 0, sizeof parts);
  forget_work();
  begin_interval();
  state.block_interval = state.interval;
}

bool is_at_block_barrier(unsigned thread) {
  return wait_of(thread).condition == &BLOCK_MEETS && !is_over(wait_of(thread));
}

void check_divergence() {
  const int first = wait_of(0).line;
  for (unsigned thread = 1; thread < state.threads; ++thread) {
    const int line = wait_of(thread).line;
    if (line == first) continue;
    Finding finding = {};
    finding.kind = DIVERGENT;
    const bool first_waits = first != 0;
    finding.access = first_waits ? at_line(0, first) : at_line(thread, line);
    finding.other = first_waits ? at_line(thread, line) : at_line(0, first);
    report_last(finding);
  }
}

}  // namespace gg

extern "C" void gg_barrier(int line) { gg::wait_for_block(line); }

extern "C" int gg_barrier_or(int predicate, int line) {
  int &vote = gg::votes[gg::state.interval % 2];
  vote |= predicate != 0;
  gg::wait_for_block(line);
  return vote;
}

extern "C" void gg_named_barrier(unsigned id, unsigned threads) {
  gg::wait_for(id, threads, gg::state.call_line[gg::state.thread]);
}
extern "C" void gg_named_barrier_of_all(unsigned id) { gg_named_barrier(id, gg::state.threads); }

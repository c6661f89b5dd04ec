#include "clocks.h"

#include <cstring>

namespace gg {
namespace {

Clock clocks[MAX_THREADS];
Clock known;  // to all threads since the block's last barrier

unsigned count_actors() { return state.threads + BESIDE; }

// Its entries, which those of an earlier interval are not.
Clock &current(Clock &clock) {
  if (clock.interval == state.interval) return clock;
  const size_t bytes = count_actors() * sizeof *clock.seen;
  memcpy(clock.seen, known.seen, bytes);
  memcpy(clock.published, known.published, bytes);
  clock.interval = state.interval;
  return clock;
}

const Clock &own() {
  const Clock &clock = clocks[state.thread];
  return clock.interval == state.interval ? clock : known;
}

void raise(uint32_t *times, const uint32_t *others) {
  const unsigned count = count_actors();
  for (unsigned i = 0; i < count; ++i) times[i] = times[i] < others[i] ? others[i] : times[i];
}

void join(Clock &clock, const Clock &other) {
  raise(clock.seen, other.seen);
  raise(clock.published, other.published);
}

}  // namespace

void release(Clock &clock, unsigned thread) {
  if (!keeps_clocks()) return;
  join(current(clock), current(clocks[thread]));
  clock.seen[thread] = state.time[thread]++;
}

void release(Clock &clock) { release(clock, state.thread); }

void acquire(const Clock &clock) {
  if (!keeps_clocks() || clock.interval != state.interval) return;
  join(current(clocks[state.thread]), clock);
}

void clear(Clock &clock) { clock.interval = 0; }

const uint32_t *times_seen() { return own().seen; }

bool has_seen(unsigned actor, uint32_t time) { return time <= own().seen[actor]; }

bool has_seen_all(const Clock &clock) {
  if (!keeps_clocks() || clock.interval != state.interval) return true;
  const uint32_t *seen = times_seen();
  for (unsigned i = 0; i < count_actors(); ++i) {
    if (clock.seen[i] > seen[i] && i != state.thread) return false;
  }
  return true;
}

void fence_async() {
  if (!keeps_clocks()) return;
  current(clocks[state.thread]).published[state.thread] = state.time[state.thread]++;
}

bool is_published(unsigned actor, uint32_t time) { return time <= own().published[actor]; }

void finish(unsigned actor, Clock &clock) {
  if (keeps_clocks()) current(clock).seen[actor] = state.time[actor]++;
}

void see(unsigned actor, uint32_t time) {
  if (!keeps_clocks()) return;
  uint32_t &seen = current(clocks[state.thread]).seen[actor];
  if (seen < time) seen = time;
}

void meet_block() {
  if (!keeps_clocks()) return;
  for (unsigned thread = 0; thread < state.threads; ++thread) {
    if (clocks[thread].interval == state.interval) join(known, clocks[thread]);
  }
  for (unsigned thread = 0; thread < state.threads; ++thread) {
    known.seen[thread] = state.time[thread]++;
  }
}

void forget_work() {
  if (!keeps_clocks()) return;
  for (unsigned i = 0; i < count_actors(); ++i) known.seen[i] = state.time[i]++;
}

}  // namespace gg

#include "clocks.h"

#include <cstring>

namespace gg {
namespace {

Clock clocks[MAX_RESIDENT];
Clock known;  // to all threads since the block's last barrier
uint32_t versions;
bool publishes;  // before the first block the second halves of all clocks are zeros

unsigned count_actors() { return state.residents + state.cluster * BESIDE; }

void change(Clock &clock) { clock.version = ++versions; }

void copy(Clock &clock, const Clock &other) {
  const size_t bytes = count_actors() * sizeof *clock.seen;
  memcpy(clock.seen, other.seen, bytes);
  if (publishes) memcpy(clock.published, other.published, bytes);
  clock.interval = state.interval;
  clock.version = other.version;
  clock.joined = 0;
}

// Its entries, which those of an earlier interval are not.
Clock &current(Clock &clock) {
  if (clock.interval != state.interval) copy(clock, known);
  return clock;
}

const Clock &own() {
  const Clock &clock = clocks[state.thread];
  return clock.interval == state.interval ? clock : known;
}

[[gnu::optimize("O3")]] void raise(uint32_t *times, const uint32_t *others) {
  const unsigned count = count_actors();
  for (unsigned i = 0; i < count; ++i) times[i] = times[i] < others[i] ? others[i] : times[i];
}

// The lanes of a warp mostly know the same, which is joined once.
void join(Clock &clock, const Clock &other) {
  if (other.version == clock.joined || other.version == clock.version) return;
  raise(clock.seen, other.seen);
  if (publishes) raise(clock.published, other.published);
  clock.joined = other.version;
  change(clock);
}

}  // namespace

void release(Clock &clock, unsigned thread) {
  if (!keeps_clocks()) return;
  join(current(clock), current(clocks[thread]));
  clock.seen[thread] = state.time[thread]++;
  change(clock);
}

void release(Clock &clock) { release(clock, state.thread); }

void acquire(const Clock &clock) {
  if (!keeps_clocks() || clock.interval != state.interval) return;
  join(current(clocks[state.thread]), clock);
}

void adopt(const Clock &clock) {
  if (keeps_clocks() && clock.interval == state.interval) copy(clocks[state.thread], clock);
}

void clear(Clock &clock) { clock.interval = 0; }

void keep(Clock &kept, const Clock &clock) {
  if (clock.interval == state.interval) {
    copy(kept, clock);
  } else {
    clear(kept);
  }
}

const uint32_t *times_seen() { return own().seen; }

const uint32_t *times_published() { return own().published; }

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
  publishes = true;
  Clock &mine = current(clocks[state.thread]);
  mine.published[state.thread] = state.time[state.thread]++;
  change(mine);
}

bool is_published(unsigned actor, uint32_t time) { return time <= own().published[actor]; }

void finish(unsigned actor, Clock &clock) {
  if (!keeps_clocks()) return;
  current(clock).seen[actor] = state.time[actor]++;
  change(clock);
}

void see(unsigned actor, uint32_t time) {
  if (!keeps_clocks()) return;
  Clock &mine = current(clocks[state.thread]);
  if (mine.seen[actor] < time) mine.seen[actor] = time;
  change(mine);
}

void meet_block() {
  if (!keeps_clocks()) return;
  for (unsigned thread = 0; thread < state.threads; ++thread) {
    if (clocks[thread].interval == state.interval) join(known, clocks[thread]);
  }
  for (unsigned thread = 0; thread < state.threads; ++thread) {
    known.seen[thread] = state.time[thread]++;
  }
  change(known);
}

void forget_work() {
  if (!keeps_clocks()) return;
  publishes = true;
  for (unsigned i = 0; i < count_actors(); ++i) {
    known.published[i] = known.seen[i] = state.time[i]++;
  }
  change(known);
}

}  // namespace gg

// The latest read of each word of shared memory by each thread, where clocks order threads: a write
// must come after all of them, and the two that a cell keeps don't suffice.

#include "shadow.h"

#include "clocks.h"

namespace gg {
namespace {

uint32_t *times;  // of each word, and of each thread and actor of its block; 0 is never
size_t words;     // of each block

unsigned width() { return state.threads + BESIDE; }

uint32_t *times_of(unsigned rank, size_t word) {
  if (times == nullptr) {
    words = state.shared_bytes / state.header.word + 1;
    const size_t bytes = state.cluster * words * width() * sizeof *times;
    times = static_cast<uint32_t *>(map_memory(bytes, "reads"));
  }
  return times + (rank * words + word) * width();
}

[[gnu::optimize("O3")]] bool is_any_later(const uint32_t *a, const uint32_t *b, unsigned count) {
  uint32_t any = 0;
  for (unsigned i = 0; i < count; ++i) any |= a[i] > b[i];
  return any != 0;
}

// Of `count` actors from `first` on, one that has read later than in `known`.
unsigned find_later(const uint32_t *read, const uint32_t *known, unsigned first, unsigned count) {
  const uint32_t *seen = known + first;
  if (!is_any_later(read, seen, count)) return NO_THREAD;
  for (unsigned i = 0; i < count; ++i) {
    if (read[i] > seen[i] && first + i != state.thread) return first + i;
  }
  return NO_THREAD;
}

unsigned first_thread(unsigned rank) { return rank * state.threads; }
unsigned first_beside(unsigned rank) { return state.residents + rank * BESIDE; }

}  // namespace

// Threads of other blocks read nothing but barriers, which they use after their initialization.
void note_read(unsigned rank, size_t word, unsigned actor) {
  const bool is_thread = actor < state.residents;
  const unsigned number = actor - (is_thread ? first_thread(rank) : first_beside(rank));
  if (number >= (is_thread ? state.threads : BESIDE)) return;
  times_of(rank, word)[is_thread ? number : state.threads + number] = state.time[actor];
}

unsigned find_unseen_read(unsigned rank, size_t word) {
  const uint32_t *read = times_of(rank, word);
  const uint32_t *seen = times_seen();
  const unsigned thread = find_later(read, seen, first_thread(rank), state.threads);
  if (thread != NO_THREAD) return thread;
  return find_later(read + state.threads, seen, first_beside(rank), BESIDE);
}

unsigned find_unpublished_read(unsigned rank, size_t word) {
  return find_later(times_of(rank, word), times_published(), first_thread(rank), state.threads);
}

}  // namespace gg

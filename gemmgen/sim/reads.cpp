// The latest read of each word of shared memory by each thread, where clocks order threads: a write
// must come after all of them, and the two that a cell keeps don't suffice.

#include "shadow.h"

#include "clocks.h"

namespace gg {
namespace {

// Of a word: who of its block has read it since the block began, a bit for each warp and for each
// actor beside the threads.  All know of what an earlier block did (`forget_work`).
struct Readers {
  uint32_t interval;  // the first of that block
  uint32_t warps;
  uint64_t beside;
};
static_assert(MAX_THREADS / WARP <= 32 && BESIDE <= 64, "a bit for each");

uint32_t *times;  // of each word, and of each thread and actor of its block; 0 is never
Readers *readers;
size_t words;     // of each block

unsigned width() { return state.threads + BESIDE; }

size_t index_of(unsigned rank, size_t word) {
  if (times == nullptr) {
    words = state.shared_bytes / state.header.word + 1;
    const size_t count = gg_cluster_blocks * words;
    times = static_cast<uint32_t *>(map_memory(count * width() * sizeof *times, "reads"));
    readers = static_cast<Readers *>(map_memory(count * sizeof *readers, "readers"));
  }
  return rank * words + word;
}

uint32_t *times_of(size_t index) { return times + index * width(); }

// The readers that are known, if there are any.
Readers readers_of(size_t index) {
  const Readers &found = readers[index];
  return found.interval == state.block_interval ? found : Readers{};
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

// The same of all threads of the warps that have read.
unsigned find_later_thread(const uint32_t *read, const uint32_t *known, unsigned first,
                           uint32_t warps) {
  for (; warps != 0; warps &= warps - 1) {
    const unsigned at = static_cast<unsigned>(__builtin_ctz(warps)) * WARP;
    const unsigned left = state.threads - at, count = left < WARP ? left : WARP;
    const unsigned found = find_later(read + at, known, first + at, count);
    if (found != NO_THREAD) return found;
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
  const size_t index = index_of(rank, word);
  times_of(index)[is_thread ? number : state.threads + number] = state.time[actor];
  Readers &known = readers[index];
  if (known.interval != state.block_interval) known = {state.block_interval, 0, 0};
  if (is_thread) {
    known.warps |= 1u << number / WARP;
  } else {
    known.beside |= uint64_t{1} << number;
  }
}

unsigned find_unseen_read(unsigned rank, size_t word) {
  const size_t index = index_of(rank, word);
  const Readers known = readers_of(index);
  const uint32_t *read = times_of(index);
  const uint32_t *seen = times_seen();
  const unsigned thread = find_later_thread(read, seen, first_thread(rank), known.warps);
  if (thread != NO_THREAD || known.beside == 0) return thread;
  return find_later(read + state.threads, seen, first_beside(rank), BESIDE);
}

unsigned find_unpublished_read(unsigned rank, size_t word) {
  const size_t index = index_of(rank, word);
  const uint32_t warps = readers_of(index).warps;
  return find_later_thread(times_of(index), times_published(), first_thread(rank), warps);
}

}  // namespace gg

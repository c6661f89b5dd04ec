// The latest read of each word of shared memory by each thread, where clocks order threads: a write
// must come after all of them, and the two that a cell keeps don't suffice.

#include "shadow.h"

#include <sys/mman.h>

#include "clocks.h"

namespace gg {
namespace {

uint32_t *times;  // of each word and actor; 0 is never

unsigned width() { return state.threads + BESIDE; }

uint32_t *times_of(size_t word) {
  if (times == nullptr) {
    const size_t bytes = (state.shared_bytes / state.header.word + 1) * width() * sizeof *times;
    void *mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) fault("no memory for the %zu bytes of reads", bytes);
    times = static_cast<uint32_t *>(mapping);
  }
  return times + word * width();
}

[[gnu::optimize("O3")]] bool is_any_later(const uint32_t *a, const uint32_t *b, unsigned count) {
  uint32_t any = 0;
  for (unsigned i = 0; i < count; ++i) any |= a[i] > b[i];
  return any != 0;
}

}  // namespace

void note_read(size_t word, unsigned actor) { times_of(word)[actor] = state.time[actor]; }

unsigned find_unseen_read(size_t word) {
  const uint32_t *read = times_of(word), *seen = times_seen();
  const unsigned count = width();
  if (!is_any_later(read, seen, count)) return NOBODY;
  for (unsigned i = 0; i < count; ++i) {
    if (read[i] > seen[i] && i != state.thread) return i;
  }
  return NOBODY;
}

}  // namespace gg

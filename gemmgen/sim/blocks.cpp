// Atomics of global memory.  Blocks run one after another, so each operation is atomic as it is.

#include "runner.h"

namespace {

#define GG_CALLER static_cast<uint32_t>(reinterpret_cast<uintptr_t>(__builtin_return_address(0)))

unsigned increment(unsigned *counter, unsigned last, uint32_t pc) {
  if (gg::touch_atomic) gg::touch_atomic(counter, sizeof *counter, pc);
  const unsigned before = *counter;
  *counter = before >= last ? 0 : before + 1;
  return before;
}

template <typename T>
void add(T *target, T value, uint32_t pc) {
  if (gg::touch_atomic) gg::touch_atomic(target, sizeof *target, pc);
  *target += value;
}

}  // namespace

extern "C" {
unsigned gg_increment(unsigned *counter, unsigned last) {
  return increment(counter, last, GG_CALLER);
}

// Acquire-release: what a block wrote before the barrier that precedes its count is visible to the
// blocks that count on the same counter later, after their next barrier.
unsigned gg_increment_ordered(unsigned *counter, unsigned last) {
  if (gg::note_count) gg::note_count(counter);
  return increment(counter, last, GG_CALLER);
}

unsigned atomicInc(unsigned *counter, unsigned last) {
  return increment(counter, last, GG_CALLER);
}

void gg_add_float(float *target, float value) { add(target, value, GG_CALLER); }
void gg_add_double(double *target, double value) { add(target, value, GG_CALLER); }
void gg_add_int(int *target, unsigned value) {  // as unsigned, it wraps
  add(reinterpret_cast<unsigned *>(target), value, GG_CALLER);
}
}

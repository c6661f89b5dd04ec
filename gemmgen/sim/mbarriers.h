// Barriers in shared memory (mbarrier): their phases, and who is to come before one ends.
#pragma once

#include "runner.h"

namespace gg {

// A call by a thread of an instruction: where findings of what it started are located.
struct Call {
  uint32_t pc, thread;
  int line;
};
Call call_at(const void *pc);  // by the running thread
Access access_of(const Call &call, uint32_t write);

constexpr unsigned MAX_BARRIERS = 512, MBARRIER_BYTES = 8;

struct MBarrier {
  uint32_t rank, offset;  // in the shared memory of this block of the cluster
  uint32_t number;  // among all that run together, from 0
  uint32_t of_block;  // among those of its block
  uint32_t count;   // arrivals of each phase
  uint32_t pending;
  int32_t bytes;    // that the phase still expects
  uint32_t phase;   // counted from 0
  uint32_t seen;    // phases whose end some thread has waited for
  uint32_t filled;  // the last phase, plus 1, in which a copy landed
  Call initialized, filler;
  bool is_fenced;   // TMA sees that it is initialized
};

struct Place;

// The barrier at an address that the running thread or TMA uses; ends the run if there
// is none.
MBarrier &mbarrier_at(const Place &place, const Call &by);
void complete_bytes(MBarrier &barrier, uint32_t bytes, const Call &by);

// What a call does wrong; `format` as printf's.
__attribute__((format(printf, 3, 4))) [[noreturn]] void stop_at(Kind kind, const Call &by,
                                                               const char *format, ...);

}  // namespace gg

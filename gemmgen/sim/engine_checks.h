// What a checked build learns from the models of barriers and of the copy engine: who has waited for
// whom, and which memory the engine reads or writes.  Null in other builds.
#pragma once

#include "mbarriers.h"

namespace gg {

// An access by the running thread, or by the copy engine on its behalf.
[[gnu::weak]] void check_engine(const void *address, uint32_t bytes, bool write, uint32_t pc);

// A barrier has been initialized, the block's `number`-th; a thread arrives at it; all have arrived;
// a thread has waited for that.
[[gnu::weak]] void begin_mbarrier(const MBarrier &barrier, unsigned number);
[[gnu::weak]] void release_to(const MBarrier &barrier);
[[gnu::weak]] void end_phase(const MBarrier &barrier);
[[gnu::weak]] void acquire_from(const MBarrier &barrier);

// The engine sees what the running thread has written to shared memory.
[[gnu::weak]] void publish_writes();

}  // namespace gg

// What a checked build learns from the models of barriers and of TMA: which thread has waited
// for which, and which memory TMA reads and writes.  Null in other builds.
#pragma once

#include "box_copies.h"

namespace gg {

// A barrier has been initialized; the running thread arrives at it; all have arrived; the running
// thread has waited for that.
[[gnu::weak]] void begin_barrier(const MBarrier &barrier);
[[gnu::weak]] void leave_clock(const MBarrier &barrier);
[[gnu::weak]] void end_phase(const MBarrier &barrier);
[[gnu::weak]] void take_clock(const MBarrier &barrier);

// The running thread uses a barrier that is there, or changes what others must know of it.
[[gnu::weak]] void check_barrier(const MBarrier &barrier, bool changes, const Call &by);

// A copy is issued that `barrier` counts; it has landed.
[[gnu::weak]] void check_load(const BoxCopy &copy, const MBarrier &barrier);
[[gnu::weak]] void check_landed(const BoxCopy &copy, const MBarrier &barrier);

// A copy out of shared memory is issued: its time, by which its thread later waits for it.
[[gnu::weak]] uint32_t check_store(const BoxCopy &copy);
[[gnu::weak]] void check_awaited(const BoxCopy &copy, uint32_t time);

// TMA sees what the running thread has written to shared memory.
[[gnu::weak]] void publish();

}  // namespace gg

// What happens before what, among threads of a block, or of a cluster, that do not always wait for
// all of it.
//
// A thread's time counts its synchronizations, and each access is at a time.  A clock says of each
// thread up to which of its times all is known to have happened: a thread that arrives somewhere
// leaves its clock there, and one that waits there takes it along.  The block's own barrier needs
// none of this: what came before the last one, in an earlier interval, happens before all that
// follows, unless the block is one of a cluster.  So clocks are kept only for kernels that synchronize
// otherwise (`Header.clocks`); for others the functions do nothing.
//
// Work beside the threads, such as that of TMA, has times too: those of actors from
// `state.residents` on, `BESIDE` for each block.
#pragma once

#include "runner.h"

namespace gg {

// Of what is not known to have happened, an actor's time is 0.
struct Clock {
  uint32_t interval;  // of its entries; in a later one they say nothing that is not known
  uint32_t version;   // alike only in clocks that are equal
  uint32_t joined;    // the version of the clock that was joined last
  uint32_t seen[MAX_ACTORS];
  uint32_t published[MAX_ACTORS];  // of it, what the async proxy sees too
};

inline bool keeps_clocks() { return state.header.clocks != 0; }

// The running thread arrives, or `thread` does in a barrier: what it has done and seen up to now is
// left in `clock`.
void release(Clock &clock);
void release(Clock &clock, unsigned thread);
void acquire(const Clock &clock);  // the running thread has waited there
void adopt(const Clock &clock);    // and nowhere else since it has left its own clock there
void clear(Clock &clock);
void keep(Clock &kept, const Clock &clock);  // what is known of an interval that is not over

bool has_seen(unsigned actor, uint32_t time);  // the running thread has
bool has_seen_all(const Clock &clock);
const uint32_t *times_seen();  // by the running thread, of each actor
const uint32_t *times_published();  // of that, what the async proxy has seen, too

// fence.proxy.async: what the running thread has written and read up to now is published.  Others publish it
// further by release and acquire, as they pass on what they have seen.
void fence_async();
bool is_published(unsigned actor, uint32_t time);  // as the running thread knows

// Work beside the threads: `actor` ends all that it has done at its present time, which `clock`, or
// the running thread, then knows of.
void finish(unsigned actor, Clock &clock);
void see(unsigned actor, uint32_t time);

void meet_block();   // at its barrier: all threads know of all of them
void forget_work();  // before the first thread of a block: all before it has happened

}  // namespace gg

// Shadow memory: the latest accesses of each word, from which races and unwritten reads are found.
#pragma once

#include "runner.h"

namespace gg {

struct Touch {
  const unsigned char *address;
  uint32_t bytes;
  bool write;
  uint32_t pc;  // the program is linked below 4 GiB
  bool atomic = false;
  uint32_t beside = 0;  // BESIDE_THREAD or BY_TENSOR_CORE: the running thread asks for it
  unsigned rank = state.rank;  // of the block whose shared memory it is, if it is shared
};

// The array that is accessed, and the offset into it.
struct Where {
  Target target;
  unsigned index;
  int64_t offset;  // bytes
};

// Whether what `thread` of `block` did in `interval`, at its `time`, happens before the running
// thread's next step.
bool precedes_now(uint32_t block, uint32_t interval, uint16_t thread, uint32_t time);

Finding found(Kind kind, const Touch &touch, const Where &where, const Access &other = {});

// access_checks.cpp: an access by the running thread, or by the work beside it that it starts.
void check_access(const Touch &touch, unsigned actor);

// Record each word of an access: in the segment of shared memory from `offset`, or of a tensor that
// the kernel writes from its logical `element`.
// `actor` is the running thread, or the work beside the threads that it starts with this access.
void touch_shared(const Touch &touch, const Where &where, size_t offset,
                  unsigned actor = state.thread);
void touch_tensor(const Touch &touch, const Where &where, size_t element);

// Record that an asynchronous copy to `offset` of shared memory has been issued (after its write
// was recorded), and that its thread has waited for it: other threads see it after a barrier.
void begin_copy(size_t offset, size_t bytes, unsigned rank = state.rank);
void end_copy(size_t offset, size_t bytes, unsigned rank = state.rank,
              unsigned actor = state.thread);

// reads.cpp; `word` counts from the beginning of the shared memory of the block of this rank.
constexpr unsigned NO_THREAD = MAX_ACTORS;
void note_read(unsigned rank, size_t word, unsigned actor);
unsigned find_unseen_read(unsigned rank, size_t word);  // an actor's that the running thread does not know of
unsigned find_unpublished_read(unsigned rank, size_t word);  // a thread's that TMA may overtake

}  // namespace gg

// Shadow memory: who touched a word last, so that races and what was never written are found.
#pragma once

#include "runner.h"

namespace gg {

struct Touch {
  const unsigned char *address;
  uint32_t bytes;
  bool write;
  uint32_t pc;  // the program is linked below 4 GiB
  bool atomic = false;
};

// Which array is touched, and how far into it.
struct Where {
  Target target;
  unsigned index;
  int64_t offset;  // bytes
};

// Does what `thread` of `block` did in `interval` come before what the running thread does now?
bool precedes_now(uint32_t block, uint32_t interval, uint16_t thread);

Finding found(Kind kind, const Touch &touch, const Where &where, const Access &other = {});

// Each word of an access, in the segment of shared memory from `offset`, or of a tensor that the
// kernel writes from its logical `element`.
void touch_shared(const Touch &touch, const Where &where, size_t offset);
void touch_tensor(const Touch &touch, const Where &where, size_t element);

// An asynchronous copy to the segment of shared memory from `offset` has been issued (the write is
// touched already), and has landed: what its thread has waited for, others see behind a barrier.
void begin_copy(size_t offset, size_t bytes);
void end_copy(size_t offset, size_t bytes);

}  // namespace gg

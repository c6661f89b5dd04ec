// cp.async: a copy completes some time between its issue and the wait for its group.  A launch
// simulates one of the two extremes; a correct kernel computes the same in both:
//
//   late   the target holds NaN until the wait, which exposes a read without a wait
//   early  the target holds the copy from its issue on, which exposes a store before the wait that
//          should have come after it
//
// In both the target changes at the issue, which exposes a copy into memory that is still read.
// The source is read at the issue: no kernel writes what it copies from.

#include "scheduler.h"

#include <cstring>

namespace gg {
namespace {

constexpr unsigned MAX_COPIES = 1 << 17;  // outstanding copies of a block

struct Copy {
  void *target;
  unsigned char values[16];
  uint32_t bytes, group, pc;
  Copy *next;
};

// A thread's outstanding copies in the order of their issue, and the number of the open group.
struct Queue {
  Copy *first, *last;
  uint32_t group;
};

Copy pool[MAX_COPIES];
Copy *free_copies;
unsigned used;
Queue queues[MAX_RESIDENT];

Copy *take_copy() {
  if (free_copies != nullptr) {
    Copy *copy = free_copies;
    free_copies = copy->next;
    return copy;
  }
  if (used == MAX_COPIES) fault("a block has %u asynchronous copies under way", MAX_COPIES);
  return &pool[used++];
}

size_t shared_offset(const void *target) {
  return static_cast<size_t>(static_cast<const unsigned char *>(target) - state.shared);
}

Issue describe(const Copy &copy) {
  return {copy.target, nullptr, copy.bytes, 0, copy.pc};
}

void land(const Copy &copy) {
  if (state.header.landing == LATE) memcpy(copy.target, copy.values, copy.bytes);
  if (check_landing != nullptr) check_landing(describe(copy));
}

void check_arguments(const Issue &issue) {
  const unsigned x = threadIdx.x, y = threadIdx.y;
  if (issue.valid > issue.bytes) {
    fault("thread (%u, %u) copies %d valid bytes of %u", x, y, static_cast<int>(issue.valid),
          issue.bytes);
  }
  const size_t offset = shared_offset(issue.target);
  if (offset >= state.shared_bytes || issue.bytes > state.shared_bytes - offset) {
    fault("thread (%u, %u) copies asynchronously to memory that is not shared", x, y);
  }
}

void issue_copy(const Issue &issue) {
  check_arguments(issue);
  if (check_issue != nullptr) check_issue(issue);
  note_issuer();
  Copy *copy = take_copy();
  Queue &queue = queues[state.thread];
  *copy = {issue.target, {}, issue.bytes, queue.group, issue.pc, nullptr};
  memcpy(copy->values, issue.source, issue.valid);
  if (state.header.landing == LATE) {
    memset(copy->target, 0xff, copy->bytes);  // NaN
  } else {
    memcpy(copy->target, copy->values, copy->bytes);
  }
  (queue.first == nullptr ? queue.first : queue.last->next) = copy;
  queue.last = copy;
}

// Completes the copies of all committed groups but the last `pending`, as cp.async.wait_group does.
void await(Queue &queue, uint32_t pending) {
  while (queue.first != nullptr && queue.first->group + pending < queue.group) {
    Copy *copy = queue.first;
    queue.first = copy->next;
    land(*copy);
    copy->next = free_copies;
    free_copies = copy;
  }
}

}  // namespace

void end_copies() {
  Queue &queue = queues[state.thread];
  if (queue.first != nullptr && check_end != nullptr) check_end(describe(*queue.first));
  while (queue.first != nullptr) {
    Copy *copy = queue.first;
    queue.first = copy->next;
    copy->next = free_copies;
    free_copies = copy;
  }
  queue.group = 0;
}

}  // namespace gg

extern "C" {
void gg_issue_copy(void *target, const void *source, int bytes, int valid) {
  const void *pc = __builtin_return_address(0);
  gg::issue_copy({target, source, static_cast<uint32_t>(bytes), static_cast<uint32_t>(valid),
                  static_cast<uint32_t>(reinterpret_cast<uintptr_t>(pc))});
}
void gg_commit_copies() { ++gg::queues[gg::state.thread].group; }
void gg_await(int pending) {
  gg::await(gg::queues[gg::state.thread], static_cast<uint32_t>(pending));
}
}

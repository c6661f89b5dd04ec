// Boxes from shared memory to tensors, in groups of the thread that issues them.  A box is read, and
// written where it is inside the tensor, some time between the issue and its thread's wait for its
// group: early, late or in between, as the launch says.

#include "tma_checks.h"
#include "scheduler.h"

#include <cstring>

namespace gg {
namespace {

constexpr unsigned MAX_STORES = 4096;

struct Store {
  BoxCopy copy;
  uint32_t group;  // of its thread
  uint32_t time;   // tma_checks.h
  bool is_done;
};

Store stores[MAX_STORES];  // that no thread has waited for, in the order of their issue
unsigned store_count;
uint32_t committed[MAX_RESIDENT];  // groups

void complete(Store &store) {
  if (!store.is_done) store_box(store.copy.box, memory_of(store.copy.rank), store.copy.shared);
  store.is_done = true;
}

// The agent of the scheduler. No thread is waited for: a thread that waits completes its own
// stores.
bool complete_some(bool is_stuck) {
  if (is_stuck || state.header.landing != RANDOM) return false;
  for (unsigned i = 0; i < store_count; ++i) {
    if (next_random() % 4 == 0) complete(stores[i]);
  }
  return false;
}

void issue(const BoxCopy &copy) {
  static bool is_known = false;
  if (!is_known) add_agent(complete_some);
  is_known = true;
  const uint32_t time = check_store != nullptr ? check_store(copy) : 0;
  note_issuer();
  if (store_count == MAX_STORES) fault("blocks have %u stores of boxes under way", MAX_STORES);
  stores[store_count] = {copy, committed[copy.by.thread], time, false};
  if (state.header.landing == EARLY) complete(stores[store_count]);
  ++store_count;
}

// Removes the stores of the running thread in groups before `end`.
void await(uint32_t end) {
  unsigned kept = 0;
  for (unsigned i = 0; i < store_count; ++i) {
    Store &store = stores[i];
    if (store.copy.by.thread != state.thread || store.group >= end) {
      stores[kept++] = store;
      continue;
    }
    complete(store);
    if (check_awaited != nullptr) check_awaited(store.copy, store.time);
  }
  store_count = kept;
}

}  // namespace

void end_stores() {
  for (unsigned i = 0; i < store_count; ++i) {
    const BoxCopy &copy = stores[i].copy;
    if (copy.by.thread != state.thread) continue;
    Finding finding = {};
    finding.kind = NOT_AWAITED;
    finding.target = SEGMENT;
    finding.offset = copy.shared;
    finding.bytes = copy.bytes;
    finding.access = access_of(copy.by, 0);
    report(finding);
  }
  if (store_count != 0) await(UINT32_MAX);
  committed[state.thread] = 0;
}

}  // namespace gg

extern "C" {
void gg_tma_store(const void *map, const int *at, unsigned rank, unsigned source) {
  using namespace gg;
  const Call by = call_at(__builtin_return_address(0));
  issue(box_copy(map, at, rank, {state.rank, source}, by));
}

void gg_tma_commit() { ++gg::committed[gg::state.thread]; }

void gg_tma_await(int pending) {
  using namespace gg;
  const uint32_t groups = committed[state.thread], kept = static_cast<uint32_t>(pending);
  await(groups > kept ? groups - kept : 0);
}
}

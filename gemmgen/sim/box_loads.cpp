// Boxes from tensors to shared memory.  A box lands some time after its copy is issued:
//
//   late     not before nobody can go on without it, the latest copy first
//   early    at its issue
//   random   in between
//
// From the issue on until it lands the target holds NaN.

#include "engine_checks.h"
#include "scheduler.h"

#include <cstring>

namespace gg {
namespace {

constexpr unsigned MAX_LOADS = 4096;

struct Load {
  BoxCopy copy;
  MBarrier *barrier;
};

Load loads[MAX_LOADS];  // under way, in the order of their issue
unsigned load_count;

void land(const Load &load) {
  const BoxCopy &copy = load.copy;
  load_box(copy.box, state.shared, copy.shared);
  if (check_landed != nullptr) check_landed(copy, *load.barrier);
  complete_bytes(*load.barrier, copy.bytes, copy.by);
}

void land_number(unsigned number) {
  const Load load = loads[number];
  --load_count;
  memmove(loads + number, loads + number + 1, (load_count - number) * sizeof *loads);
  land(load);
}

// The agent of the scheduler.
bool land_some(bool is_stuck) {
  if (load_count == 0) return false;
  const bool is_random = state.header.landing == RANDOM;
  if (!is_stuck && !(is_random && next_random() % 4 == 0)) return false;
  const auto any = static_cast<unsigned>(next_random() % load_count);
  land_number(is_random ? any : load_count - 1);
  return true;
}

bool meet(const BoxCopy &a, const BoxCopy &b) {
  return a.shared < b.shared + b.bytes && b.shared < a.shared + a.bytes;
}

void check_others(const BoxCopy &copy) {
  for (unsigned i = 0; i < load_count; ++i) {
    if (!meet(copy, loads[i].copy)) continue;
    Finding finding = {};
    finding.kind = UNDER_WAY;
    finding.target = SEGMENT;
    finding.offset = copy.shared;
    finding.bytes = copy.bytes;
    finding.access = access_of(copy.by, 1 | BESIDE_THREAD);
    finding.other = access_of(loads[i].copy.by, 1 | BESIDE_THREAD);
    report_last(finding);
  }
}

void issue(const BoxCopy &copy, uint32_t barrier) {
  static bool is_known = false;
  if (!is_known) add_agent(land_some);
  is_known = true;
  MBarrier &full = mbarrier_at(barrier, copy.by);
  if (!full.is_fenced) {
    stop_at(WRONG_BARRIER, copy.by,
            "the copy engine counts at shared:%u, which is initialized without a fence after it "
            "(fence.mbarrier_init)",
            barrier);
  }
  check_others(copy);
  if (check_load != nullptr) check_load(copy, full);
  memset(state.shared + copy.shared, 0xff, copy.bytes);  // NaN
  note_issuer();
  if (load_count == MAX_LOADS) fault("a block has %u copies of boxes under way", MAX_LOADS);
  loads[load_count++] = {copy, &full};
  const bool now = state.header.landing == RANDOM && next_random() % 4 == 0;
  if (now || state.header.landing == EARLY) land_number(load_count - 1);
}

}  // namespace

void end_loads() {
  for (unsigned i = 0; i < load_count; ++i) {
    Finding finding = {};
    finding.kind = NOT_AWAITED;
    finding.target = SEGMENT;
    finding.offset = loads[i].copy.shared;
    finding.bytes = loads[i].copy.bytes;
    finding.access = access_of(loads[i].copy.by, 1);
    report(finding);
  }
  load_count = 0;
}

}  // namespace gg

extern "C" void gg_engine_load(unsigned target, const void *map, const int *at, unsigned rank,
                            unsigned barrier) {
  using namespace gg;
  const Call by = call_at(__builtin_return_address(0));
  issue(box_copy(map, at, rank, target, by), barrier);
}

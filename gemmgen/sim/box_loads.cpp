// Boxes from tensors to shared memory.  A box lands some time after its copy is issued:
//
//   late     not before no thread can go on without it, the latest copy first
//   early    at its issue
//   random   in between
//
// From the issue on until it lands the target holds NaN.  A box for several blocks of a cluster lands
// in each of them at its own time.

#include "tma_checks.h"
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
  load_box(copy.box, memory_of(copy.rank), copy.shared);
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

bool overlap(const BoxCopy &a, const BoxCopy &b) {
  return a.rank == b.rank && a.shared < b.shared + b.bytes && b.shared < a.shared + a.bytes;
}

void check_others(const BoxCopy &copy) {
  for (unsigned i = 0; i < load_count; ++i) {
    if (!overlap(copy, loads[i].copy)) continue;
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
  MBarrier &full = mbarrier_at({copy.rank, barrier}, copy.by);
  if (!full.is_fenced) {
    stop_at(WRONG_BARRIER, copy.by,
            "TMA counts at shared:%u%s, which is initialized without a fence after it "
            "(fence.mbarrier_init)",
            barrier, whose(copy.rank, copy.by).text);
  }
  check_others(copy);
  if (check_load != nullptr) check_load(copy, full);
  memset(memory_of(copy.rank) + copy.shared, 0xff, copy.bytes);  // NaN
  note_issuer();
  if (load_count == MAX_LOADS) fault("blocks have %u copies of boxes under way", MAX_LOADS);
  loads[load_count++] = {copy, &full};
  const bool now = state.header.landing == RANDOM && next_random() % 4 == 0;
  if (now || state.header.landing == EARLY) land_number(load_count - 1);
}

}  // namespace

void end_loads(unsigned rank) {
  unsigned kept = 0;
  for (unsigned i = 0; i < load_count; ++i) {
    if (loads[i].copy.rank != rank) {
      loads[kept++] = loads[i];
      continue;
    }
    Finding finding = {};
    finding.kind = NOT_AWAITED;
    finding.target = SEGMENT;
    finding.offset = loads[i].copy.shared;
    finding.bytes = loads[i].copy.bytes;
    finding.access = access_of(loads[i].copy.by, 1);
    report(finding);
  }
  load_count = kept;
}

}  // namespace gg

using namespace gg;

extern "C" {
// The barrier is in the block that the box goes to.
void gg_tma_load(unsigned target, const void *map, const int *at, unsigned rank,
                    unsigned barrier) {
  const Call by = call_at(__builtin_return_address(0));
  const Place to = place_of(target), full = place_of(barrier);
  if (to.rank != full.rank) {
    stop_at(WRONG_COPY, by, "a box for block %u, and a barrier of block %u",
            state.first_block + to.rank, state.first_block + full.rank);
  }
  issue(box_copy(map, at, rank, to, by), full.offset);
}

// To the same offset in each block of the mask, counted by the barrier there.
void gg_tma_multicast(unsigned target, const void *map, const int *at, unsigned rank,
                         unsigned barrier, unsigned mask) {
  const Call by = call_at(__builtin_return_address(0));
  if (mask == 0 || mask >> state.cluster != 0) {
    stop_at(WRONG_COPY, by, "a multicast to the blocks of mask %#x, of a cluster of %u", mask,
            state.cluster);
  }
  for (unsigned to = 0; to < state.cluster; ++to) {
    if ((mask >> to & 1) == 0) continue;
    const Place place = {to, place_of(target).offset};
    issue(box_copy(map, at, rank, place, by), place_of(barrier).offset);
  }
}
}

// Barriers in shared memory.  A phase ends when all its arrivals have come and all the bytes that it
// expects have been written; who waits for a phase says its parity.
//
// try_wait says once that a phase has not ended, though it could wait: a text that does not ask again
// goes on too early.  Asked again it waits.

#include "clusters.h"
#include "tma_checks.h"
#include "scheduler.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace gg {
namespace {

constexpr uint32_t MOST_ARRIVALS = (1u << 20) - 1;
constexpr int64_t MOST_BYTES = (1 << 20) - 1;

MBarrier barriers[MAX_BARRIERS];  // of all blocks that run together
unsigned barrier_count;
bool was_refused[MAX_RESIDENT];

MBarrier *find(const Place &place) {
  for (unsigned i = 0; i < barrier_count; ++i) {
    const MBarrier &barrier = barriers[i];
    if (barrier.rank == place.rank && barrier.offset == place.offset) return &barriers[i];
  }
  return nullptr;
}

void begin_phase(MBarrier &barrier) {
  ++barrier.phase;
  barrier.pending = barrier.count;
}

void end_if_complete(MBarrier &barrier) {
  if (barrier.pending != 0 || barrier.bytes != 0) return;
  begin_phase(barrier);
  if (end_phase != nullptr) end_phase(barrier);
}

void expect(MBarrier &barrier, int64_t bytes, const Call &by) {
  const int64_t sum = barrier.bytes + bytes;
  if (sum > MOST_BYTES || sum < -MOST_BYTES) {
    stop_at(WRONG_BARRIER, by, "shared:%u expects %lld bytes, at most %lld can be counted",
            barrier.offset, static_cast<long long>(sum), static_cast<long long>(MOST_BYTES));
  }
  barrier.bytes = static_cast<int32_t>(sum);
}

// Those who wait for a phase may go on before the thread that ends it does.
bool always(const Wait &) { return true; }
void describe_turn(const Wait &, char *text, size_t size) { snprintf(text, size, "its turn"); }
constexpr Condition TURN = {always, describe_turn};

void arrive(MBarrier &barrier, const Call &by) {
  if (barrier.pending == 0) {
    stop_at(WRONG_BARRIER, by,
            "one arrival too many at shared:%u%s: its phase of %u has had them all, and expects %d "
            "bytes",
            barrier.offset, whose(barrier.rank, by).text, barrier.count, barrier.bytes);
  }
  if (leave_clock != nullptr) leave_clock(barrier);
  const uint32_t phase = barrier.phase;
  --barrier.pending;
  end_if_complete(barrier);
  if (barrier.phase != phase) wait_until({&TURN, nullptr, 0, by.line});
}

bool has_ended(const Wait &wait) {
  return (static_cast<const MBarrier *>(wait.on)->phase & 1) != wait.number;
}

void describe(const Wait &wait, char *text, size_t size) {
  const auto &barrier = *static_cast<const MBarrier *>(wait.on);
  snprintf(text, size, "shared:%u, parity %u (to come: %u of %u arrivals, %d bytes)",
           barrier.offset, wait.number, barrier.pending, barrier.count, barrier.bytes);
}

constexpr Condition PHASE_ENDS = {has_ended, describe};

Wait phase_of(const MBarrier &barrier, uint32_t parity, const Call &by) {
  if (parity > 1) {
    stop_at(WRONG_BARRIER, by, "parity %u of shared:%u is neither 0 nor 1", parity, barrier.offset);
  }
  return {&PHASE_ENDS, &barrier, parity, by.line};
}

// The thread sees what the phases of the barrier that have ended counted.
void see(MBarrier &barrier) {
  if (barrier.seen < barrier.phase) barrier.seen = barrier.phase;
  if (take_clock != nullptr) take_clock(barrier);
}

bool try_wait(MBarrier &barrier, uint32_t parity, const Call &by) {
  const Wait wait = phase_of(barrier, parity, by);
  if (!has_ended(wait)) {
    was_refused[by.thread] ^= true;
    if (was_refused[by.thread]) return false;
    wait_until(wait);
  }
  was_refused[by.thread] = false;
  see(barrier);
  return true;
}

bool test_wait(MBarrier &barrier, uint32_t parity, const Call &by) {
  const bool ended = has_ended(phase_of(barrier, parity, by));
  if (ended) see(barrier);
  return ended;
}

uint32_t count_of_block() {
  uint32_t count = 0;
  for (unsigned i = 0; i < barrier_count; ++i) count += barriers[i].rank == state.rank;
  return count;
}

void initialize(uint32_t offset, uint32_t count, const Call &by) {
  if (offset % MBARRIER_BYTES != 0) {
    stop_at(MISALIGNED, by, "a barrier at shared:%u, no multiple of %u", offset,
            MBARRIER_BYTES);
  }
  if (offset >= state.shared_bytes || state.shared_bytes - offset < MBARRIER_BYTES) {
    stop_at(BOUNDS, by, "a barrier at an address that is not of shared memory");
  }
  if (count == 0 || count > MOST_ARRIVALS) {
    stop_at(WRONG_BARRIER, by, "shared:%u of %u arrivals, not 1 to %u", offset, count,
            MOST_ARRIVALS);
  }
  if (find({state.rank, offset}) != nullptr) {
    stop_at(WRONG_BARRIER, by, "shared:%u is initialized again while it is in use", offset);
  }
  if (barrier_count == MAX_BARRIERS) fault("blocks have more than %u barriers", MAX_BARRIERS);
  MBarrier &made = barriers[barrier_count];
  made = {state.rank, offset, barrier_count++, count_of_block(), count, count, 0, 0, 0, 0, by, {}, false};
  if (begin_barrier != nullptr) begin_barrier(made);
  if (check_barrier != nullptr) check_barrier(made, true, by);
}

// TMA sees the barriers that the running thread has initialized; what uses one comes
// after this, as it comes after the initialization.
void fence(const Call &by) {
  for (unsigned i = 0; i < barrier_count; ++i) {
    MBarrier &barrier = barriers[i];
    if (barrier.is_fenced || barrier.initialized.thread != by.thread) continue;
    barrier.is_fenced = true;
    if (check_barrier != nullptr) check_barrier(barrier, true, by);
  }
}

}  // namespace

Call call_at(const void *pc) {
  const auto low = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(pc));
  return {low, state.thread, state.call_line[state.thread]};
}

Access access_of(const Call &call, uint32_t write) {
  return access_at(call.thread, call.pc, static_cast<uint32_t>(call.line), write);
}

void stop_at(Kind kind, const Call &by, const char *format, ...) {
  Finding finding = {};
  finding.kind = kind;
  finding.access = access_of(by, 1);
  va_list values;
  va_start(values, format);
  vsnprintf(finding.detail, sizeof finding.detail, format, values);
  va_end(values);
  report_last(finding);
}

MBarrier &mbarrier_at(const Place &place, const Call &by) {
  check_reach(place, by);
  MBarrier *found = find(place);
  if (found == nullptr) {
    stop_at(WRONG_BARRIER, by, "shared:%u%s is not a barrier: it has not been initialized",
            place.offset, whose(place.rank, by).text);
  }
  if (check_barrier != nullptr) check_barrier(*found, false, by);
  return *found;
}

void complete_bytes(MBarrier &barrier, uint32_t bytes, const Call &by) {
  expect(barrier, -int64_t{bytes}, by);
  barrier.filled = barrier.phase + 1;
  barrier.filler = by;
  end_if_complete(barrier);
}

void end_mbarriers() {
  for (unsigned i = 0; i < barrier_count; ++i) {
    const MBarrier &barrier = barriers[i];
    if (barrier.filled <= barrier.seen) continue;
    Finding finding = {};
    finding.kind = NOT_AWAITED;
    finding.access = access_of(barrier.filler, 1);
    snprintf(finding.detail, sizeof finding.detail,
             "no thread has waited for the phase of shared:%u in which its copy landed",
             barrier.offset);
    report(finding);
  }
  barrier_count = 0;
}

}  // namespace gg

using namespace gg;

extern "C" {
void gg_mbarrier_init(unsigned barrier, unsigned count) {
  initialize(barrier, count, call_at(__builtin_return_address(0)));
}

void gg_mbarrier_arrive(unsigned barrier, unsigned bytes) {
  const Call by = call_at(__builtin_return_address(0));
  MBarrier &found = mbarrier_at({state.rank, barrier}, by);
  expect(found, bytes, by);
  arrive(found, by);
}

void gg_mbarrier_arrive_at(unsigned address) {
  const Call by = call_at(__builtin_return_address(0));
  const Place place = place_of(address);
  MBarrier &found = mbarrier_at(place, by);
  note_reach(place, by);
  arrive(found, by);
}

void gg_mbarrier_expect(unsigned barrier, unsigned bytes) {
  const Call by = call_at(__builtin_return_address(0));
  expect(mbarrier_at({state.rank, barrier}, by), bytes, by);
}

bool gg_mbarrier_try(unsigned barrier, unsigned parity) {
  const Call by = call_at(__builtin_return_address(0));
  return try_wait(mbarrier_at({state.rank, barrier}, by), parity, by);
}

bool gg_mbarrier_test(unsigned barrier, unsigned parity) {
  const Call by = call_at(__builtin_return_address(0));
  return test_wait(mbarrier_at({state.rank, barrier}, by), parity, by);
}

void gg_mbarrier_fence() { fence(call_at(__builtin_return_address(0))); }

// The other way of the fence; TMA sees what the thread has written besides.
void gg_tma_fence() {
  fence(call_at(__builtin_return_address(0)));
  if (publish != nullptr) publish();
}
}

// A warpgroup's multiplications (wgmma), which are asynchronous: begun by each of its 128 threads,
// they are done, one after another, some time before a wait that covers their group ends:
//
//   late     not before no thread can go on without it
//   early    once all threads have begun it
//   random   in between
//
// Then a multiplication reads its operands.

#include "scheduler.h"
#include "wgmma.h"

#include "clusters.h"

#include <cstdio>
#include <cstring>

#include <sys/mman.h>

namespace gg {
namespace {

constexpr unsigned MAX_GROUPS = MAX_RESIDENT / WARPGROUP, MAX_PENDING = 8;
constexpr unsigned FIRST_CAPACITY = 64;  // of a ring of multiplications, which grows

struct Thread {
  uint32_t block;          // block_interval for which the rest is
  uint32_t begun, waited;  // multiplications
  uint32_t groups;
  uint32_t ends[MAX_PENDING];  // multiplications in each of the latest groups and all before it
};

struct Begun {
  Multiplication what;
  Matrix a, b;
  uint32_t number, group;
  unsigned came, warps;  // threads; a bit for each of their warps
  Call first;
  uint16_t places[WARPGROUP][MAX_ACCUMULATORS];  // of accumulators
};

struct Warpgroup {
  uint32_t block;
  uint32_t ended;          // multiplications
  unsigned rank, thread;   // the first
  Begun *begun;            // a ring of the latest
  unsigned capacity;
};

Begun &begun_at(const Warpgroup &group, uint32_t number) {
  return group.begun[number % group.capacity];
}

// PTX sets no limit to the multiplications in flight: a ring that is full becomes twice as long.
void enlarge(Warpgroup &group) {
  const unsigned capacity = group.capacity != 0 ? 2 * group.capacity : FIRST_CAPACITY;
  const size_t bytes = capacity * sizeof(Begun);
  auto *const larger = static_cast<Begun *>(map_memory(bytes, "multiplications"));
  for (unsigned i = 0; i < capacity; ++i) larger[i].number = UINT32_MAX;
  for (unsigned i = 0; i < group.capacity; ++i) {
    const Begun &one = group.begun[i];
    if (one.number != UINT32_MAX) memcpy(&larger[one.number % capacity], &one, sizeof one);
  }
  if (group.begun != nullptr) munmap(group.begun, group.capacity * sizeof(Begun));
  group.begun = larger;
  group.capacity = capacity;
}

Thread threads[MAX_RESIDENT];
Warpgroup *groups;

Thread &own() {
  Thread &mine = threads[state.thread];
  if (mine.block != state.block_interval) mine = {state.block_interval, 0, 0, 0, {}};
  return mine;
}

Warpgroup &own_group() {
  const unsigned number = state.thread % state.threads / WARPGROUP;
  Warpgroup &mine = groups[state.rank * (state.threads / WARPGROUP) + number];
  if (mine.block != state.block_interval) {
    mine.block = state.block_interval;
    mine.ended = 0;
    mine.rank = state.rank;
    mine.thread = state.rank * state.threads + number * WARPGROUP;
    if (mine.begun == nullptr) enlarge(mine);
    for (unsigned i = 0; i < mine.capacity; ++i) mine.begun[i].number = UINT32_MAX;
  }
  return mine;
}

// The accumulators of a thread: two neighbors in every 8 columns of two rows that are 8 apart.
unsigned row_of(unsigned thread, unsigned i) {
  return thread / WARP * 16 + thread % WARP / 4 + (i & 2) * 4;
}
unsigned column_of(unsigned thread, unsigned i) { return i / 4 * 8 + thread % 4 * 2 + i % 2; }

// Does the next multiplication.
void land(Warpgroup &group) {
  static uint32_t acc[WARPGROUP_ROWS][MAX_COLUMNS];
  const Begun &one = begun_at(group, group.ended++);
  const unsigned columns = one.what.columns;
  const auto each = [&](auto visit) {
    for (unsigned thread = 0; thread < WARPGROUP; ++thread) {
      for (unsigned i = 0; i < columns / 2; ++i) {
        visit(acc[row_of(thread, i)][column_of(thread, i)],
              held_accumulator(group.thread + thread, one.places[thread][i]));
      }
    }
  };
  const bool adds = one.what.accumulates;
  each([adds](uint32_t &sum, const uint32_t &held) { sum = adds ? held : 0; });
  multiply(one.a, one.b, one.what, memory_of(group.rank), acc);
  each([](const uint32_t &sum, uint32_t &held) { held = sum; });
}

bool is_begun(const Warpgroup &group) {
  const Begun &next = begun_at(group, group.ended);
  const bool is_there = group.block == state.block_interval && next.number == group.ended;
  return is_there && next.came == WARPGROUP;
}

// The agent of the scheduler.
bool land_some(bool is_stuck) {
  bool any = false;
  for (unsigned i = 0; i < MAX_GROUPS && i * WARPGROUP < state.residents; ++i) {
    if (!is_begun(groups[i])) continue;
    if (!is_stuck && !(state.header.landing == RANDOM && next_random() % 4 == 0)) continue;
    land(groups[i]);
    any = true;
  }
  return any;
}

// The running thread's warp executes an instruction of its warpgroup.
Warpgroup &join(const Call &by) {
  if (groups == nullptr) {
    groups = static_cast<Warpgroup *>(map_memory(MAX_GROUPS * sizeof *groups, "warpgroups"));
    reserve_accumulators();
    add_agent(land_some);
  }
  const unsigned first = by.thread % state.threads / WARPGROUP * WARPGROUP;
  if (first + WARPGROUP > state.threads) {
    stop_at(WRONG_MULTIPLICATION, by, "wgmma in a block of %u threads: warpgroups are 128",
            state.threads);
  }
  meet_lanes(by.line);
  return own_group();
}

Matrix left_of(const Multiplication &what, const Call &by) {
  return matrix_of(what.a, what.a_type, what.a_mn_major, WARPGROUP_ROWS, "a", by);
}
Matrix right_of(const Multiplication &what, const Call &by) {
  return matrix_of(what.b, what.b_type, what.b_mn_major, what.columns, "b", by);
}

// What a thread begins is what the others of its warpgroup do.
void check_same(const Begun &one, const Multiplication &what, const Call &by) {
  const char *other = one.first.line != by.line                    ? "the line"
                      : one.what.a != what.a                       ? "the descriptor of a"
                      : one.what.b != what.b                       ? "the descriptor of b"
                      : one.what.accumulates != what.accumulates ? "whether it accumulates"
                                                                 : nullptr;
  if (other == nullptr) return;
  stop_at(WRONG_MULTIPLICATION, by,
          "%s is not that of thread %u, of the same warpgroup, at line %d", other,
          one.first.thread % state.threads, one.first.line);
}

void begin(const Multiplication &what, uint32_t *const *acc, const Call &by) {
  Warpgroup &group = join(by);
  Thread &mine = own();
  if (mine.begun - group.ended >= group.capacity) enlarge(group);
  Begun &one = begun_at(group, mine.begun);
  if (one.number != mine.begun) {
    one.what = what;
    one.a = left_of(what, by);
    one.b = right_of(what, by);
    one.number = mine.begun;
    one.group = one.came = one.warps = 0;
    one.first = by;
  }
  check_same(one, what, by);
  const unsigned thread = state.thread - group.thread, warp = 1u << thread / WARP;
  if ((one.warps & warp) == 0 && check_operands != nullptr) {
    check_operands(one.a, one.b, what.columns, one.number, by);
  }
  one.warps |= warp;
  ++mine.begun;
  for (unsigned i = 0; i < what.columns / 2; ++i) {
    one.places[thread][i] = take_sum(acc[i], mine.begun, by);
  }
  if (++one.came < WARPGROUP) return;
  const bool now = state.header.landing == RANDOM && next_random() % 4 == 0;
  while ((now || state.header.landing == EARLY) && is_begun(group)) land(group);
}

void commit(const Call &by) {
  Warpgroup &group = join(by);
  Thread &mine = own();
  const uint32_t from = mine.groups != 0 ? mine.ends[(mine.groups - 1) % MAX_PENDING] : 0;
  mine.ends[mine.groups++ % MAX_PENDING] = mine.begun;
  for (uint32_t number = from; number < mine.begun; ++number) {
    Begun &one = begun_at(group, number);
    if (one.number != number) continue;
    if (one.group == 0) one.group = mine.groups;
    if (one.group == mine.groups) continue;
    stop_at(WRONG_MULTIPLICATION, by,
            "the multiplication at line %d is in another group of this thread than of others",
            one.first.line);
  }
}

bool has_ended(const Wait &wait) {
  return static_cast<const Warpgroup *>(wait.on)->ended >= wait.number;
}

void describe(const Wait &wait, char *text, size_t size) {
  const auto &group = *static_cast<const Warpgroup *>(wait.on);
  const Begun &next = begun_at(group, group.ended);
  snprintf(text, size, "the multiplication at line %d, begun by %u of 128 threads",
           next.first.line, next.came);
}

constexpr Condition ENDED = {has_ended, describe};

void wait(uint32_t pending, const Call &by) {
  const Warpgroup &group = join(by);
  Thread &mine = own();
  if (mine.groups <= pending) return;
  const uint32_t end = mine.ends[(mine.groups - pending - 1) % MAX_PENDING];
  if (end <= mine.waited) return;
  wait_until({&ENDED, &group, end, by.line});
  mine.waited = end;
  get_accumulators(end);
  if (check_multiplied != nullptr) check_multiplied(end);
}

}  // namespace

void end_multiplications() {
  if (groups == nullptr) return;
  const Thread &mine = own();
  if (mine.waited >= mine.begun) return;
  const Begun &one = begun_at(own_group(), mine.waited);
  Finding finding = {};
  finding.kind = WRONG_MULTIPLICATION;
  finding.access = access_of({one.first.pc, state.thread, one.first.line}, 0);
  snprintf(finding.detail, sizeof finding.detail, "no wait covers the multiplication");
  report(finding);
}

}  // namespace gg

using namespace gg;

extern "C" {
void gg_wgmma_fences() {
  join(call_at(__builtin_return_address(0)));
  fence_accumulators();
}

void gg_wgmma_multiplies(gg_type a_type, gg_type b_type, unsigned columns, unsigned *const *acc,
                         bool integers, unsigned long long a, unsigned long long b,
                         bool accumulates, bool a_mn_major, bool b_mn_major) {
  const Call by = call_at(__builtin_return_address(0));
  begin({columns, a_type, b_type, integers, a, b, a_mn_major, b_mn_major, accumulates}, acc, by);
}

void gg_wgmma_commits() { commit(call_at(__builtin_return_address(0))); }

void gg_wgmma_waits(int pending) {
  wait(static_cast<uint32_t>(pending), call_at(__builtin_return_address(0)));
}

// The text names a variable, which something else may have set.
void gg_wgmma_names(unsigned *at) {
  reserve_accumulators();
  name_sum(at);
}
}

// setmaxnreg: the registers of a block's threads.  A warpgroup gives some back, or waits until there
// are as many as it asks for.

#include "mbarriers.h"
#include "scheduler.h"

#include <cstdio>
#include <cstring>

namespace gg {
namespace {

constexpr unsigned GROUP = 128, MAX_GROUPS = MAX_THREADS / GROUP;  // of a block
constexpr uint32_t OF_A_MULTIPROCESSOR = 65536, MOST = 256, UNIT = 8;

struct Group {
  unsigned came;  // threads that have executed its latest change
  uint32_t count;
  Call first;
};

uint32_t available[MAX_CLUSTER];  // that a block's threads have given back
uint32_t held[MAX_RESIDENT];
Group groups[MAX_CLUSTER][MAX_GROUPS];
bool is_used;

// What ptxas gives a thread of a kernel whose launch bounds say how many threads and blocks a
// multiprocessor holds.
uint32_t at_entry() {
  const uint32_t each = OF_A_MULTIPROCESSOR / (state.threads * gg_resident_blocks) / UNIT * UNIT;
  return each < MOST ? each : MOST;
}

void begin() {
  is_used = true;
  for (uint32_t &count : available) count = 0;
  for (unsigned i = 0; i < state.residents; ++i) held[i] = at_entry();
}

uint32_t free_of(const Wait &wait) { return *static_cast<const uint32_t *>(wait.on); }

bool is_there(const Wait &wait) { return free_of(wait) >= wait.number; }

void describe(const Wait &wait, char *text, size_t size) {
  snprintf(text, size, "%u registers, %u are free", wait.number, free_of(wait));
}

constexpr Condition REGISTERS = {is_there, describe};

// All threads of a warpgroup make the same changes.
void check_group(uint32_t count, const Call &by) {
  const unsigned number = by.thread % state.threads / GROUP;
  Group &group = groups[state.rank][number];
  if (number >= state.threads / GROUP) {
    stop_at(WRONG_REGISTERS, by, "setmaxnreg in a block of %u threads: warpgroups are 128",
            state.threads);
  }
  if (group.came == 0) {
    group.count = count;
    group.first = by;
  } else if (group.count != count || group.first.line != by.line) {
    stop_at(WRONG_REGISTERS, by, "setmaxnreg %u here, and %u in another thread of the warpgroup",
            count, group.count);
  }
  group.came = (group.came + 1) % GROUP;
}

void change(uint32_t count, bool raises, const Call &by) {
  if (!is_used) begin();
  uint32_t &mine = held[by.thread];
  if (raises ? count < mine : count > mine) {
    stop_at(WRONG_REGISTERS, by, "setmaxnreg.%s to %u registers of a thread that has %u",
            raises ? "inc" : "dec", count, mine);
  }
  check_group(count, by);
  if (raises) {
    const uint32_t more = count - mine;
    uint32_t &free = available[state.rank];
    do {  // others take what is free when it is their turn
      wait_until({&REGISTERS, &free, more, by.line});
    } while (free < more);
    free -= more;
  } else {
    available[state.rank] += mine - count;
  }
  mine = count;
}

}  // namespace

void end_registers() {
  if (!is_used) return;
  is_used = false;
  for (Group(&of_block)[MAX_GROUPS] : groups) {
    for (Group &group : of_block) {
      if (group.came == 0) continue;
      stop_at(WRONG_REGISTERS, group.first, "setmaxnreg is executed by %u of a warpgroup's threads",
              group.came);
    }
  }
}

}  // namespace gg

extern "C" void gg_registers_change(unsigned count, bool raises) {
  gg::change(count, raises, gg::call_at(__builtin_return_address(0)));
}

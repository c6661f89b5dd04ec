// What a warpgroup's multiplications read, among what happens before what: each warpgroup has an
// actor of clocks.h, whose time counts its multiplications.

#include "wgmma.h"

#include "clocks.h"
#include "shadow.h"

namespace gg {
namespace {

constexpr unsigned WARP_ROWS = WARPGROUP_ROWS / (WARPGROUP / WARP), UNIT_BYTES = 16;

struct Began {
  uint32_t block;  // block_interval
  uint32_t time;   // of its first multiplication
};
Began began[MAX_CLUSTER][OF_WARPGROUPS];

unsigned number_of_group() { return state.thread % state.threads / WARPGROUP % OF_WARPGROUPS; }

unsigned multiplier() {
  return state.residents + state.rank * BESIDE + OF_BARRIERS + OF_STORERS + number_of_group();
}

uint32_t time_of(uint32_t number) {
  Began &mine = began[state.rank][number_of_group()];
  if (mine.block != state.block_interval) mine = {state.block_interval, state.time[multiplier()]};
  return mine.time + number;
}

// 16 bytes at a time: what lies together in memory.
void check_matrix(const Matrix &matrix, unsigned first, unsigned end, const Call &by) {
  const unsigned lengthwise = UNIT_BYTES / matrix.element, steps = STEP_BYTES / matrix.element;
  const unsigned of_row = matrix.is_mn_major ? lengthwise : 1, of_k = matrix.is_mn_major ? 1 : lengthwise;
  for (unsigned row = first; row < end; row += of_row) {
    for (unsigned k = 0; k < steps; k += of_k) {
      const unsigned char *const at = state.shared + offset_in(matrix, row, k);
      check_access({at, UNIT_BYTES, false, by.pc, false, BY_TENSOR_CORE}, multiplier());
    }
  }
}

}  // namespace

// A warp reads its own rows of a, and all of b.
void check_operands(const Matrix &a, const Matrix &b, unsigned columns, uint32_t number,
                    const Call &by) {
  if (!keeps_clocks()) return;
  const unsigned actor = multiplier(), warp = state.thread % WARPGROUP / WARP;
  const uint32_t time = time_of(number), latest = state.time[actor];
  state.starter[actor - state.residents] = static_cast<uint16_t>(state.thread);
  state.time[actor] = time;
  check_matrix(a, warp * WARP_ROWS, (warp + 1) * WARP_ROWS, by);
  check_matrix(b, 0, columns, by);
  state.time[actor] = latest > time ? latest : time + 1;
}

void check_multiplied(uint32_t end) { see(multiplier(), time_of(end) - 1); }

}  // namespace gg

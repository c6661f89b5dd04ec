// The model of wmma.mma.sync: a warp multiplies two 16 x 16 fragments.
//
// PTX does not specify which lane holds which element, so a kernel may not depend on it.  Here a
// lane holds half a line (16 elements contiguous in memory); which half depends on the operand and
// the layout of the load (ptx.h).  Products are added as the tensor cores of the text's target do.

#include "fused_sum.h"

#include <cstdio>
#include <cstring>

namespace gg {
namespace {

constexpr unsigned SIDE = 16, HALF = 8;

struct Halves {
  float a[HALF], b[HALF];
};

struct FragmentAddress {
  const void *first;
  long long pitch;
};

void convert(const uint32_t *words, bool is_f16, float *values) {
  for (unsigned i = 0; i < HALF; ++i) {
    const auto bits = static_cast<uint16_t>(words[i / 2] >> i % 2 * 16);
    if (is_f16) {
      gg_ptx::cvt_f32_f16(values[i], bits);
    } else {
      values[i] = gg_ptx::bits_of<float>(uint32_t{bits} << 16);
    }
  }
}

}  // namespace
}  // namespace gg

extern "C" void gg_warp_multiply(float *sum, const unsigned *a, const unsigned *b, bool is_f16,
                                 bool a_by_rows, bool b_by_rows) {
  using namespace gg;
  Halves mine;
  convert(a, is_f16, mine.a);
  convert(b, is_f16, mine.b);
  const unsigned char *all = gg_exchange(&mine, sizeof mine);
  // The half lines of all lanes, two to a line, as a load of this operand and layout distributes
  // them.
  const auto halves = [all](unsigned at, unsigned within, unsigned swap) -> const Halves & {
    const unsigned from = (2 * at + within / HALF) ^ swap;
    return *reinterpret_cast<const Halves *>(all + from * GG_DEPOSIT);
  };
  const unsigned of_a = a_by_rows ? 0 : 1, of_b = b_by_rows ? 2 : 3;
  const unsigned lane = state.thread % WARP, row = lane / 2, first = lane % 2 * HALF;
  const double least = power_of_two(least_exponent(is_f16 ? GG_F16 : GG_BF16));
  double left[SIDE], of_left[SIDE], right[SIDE][HALF], of_right[SIDE][HALF];
  for (unsigned k = 0; k < SIDE; ++k) {
    left[k] = static_cast<double>(a_by_rows ? halves(row, k, of_a).a[k % HALF]
                                            : halves(k, row, of_a).a[row % HALF]);
    of_left[k] = power_of(left[k], least);
    for (unsigned i = 0; i < HALF; ++i) {
      const unsigned column = first + i;
      right[k][i] = static_cast<double>(b_by_rows ? halves(k, column, of_b).b[i]
                                                  : halves(column, k, of_b).b[k % HALF]);
      of_right[k][i] = power_of(right[k][i], least);
    }
  }
  add_instruction(
      sum, HALF, SIDE, sum_rule(), [&](unsigned k, unsigned i) { return left[k] * right[k][i]; },
      [&](unsigned k, unsigned i) { return of_left[k] * of_right[k][i]; });
}

extern "C" void gg_mixed_fragment() {
  using namespace gg;
  fault("at line %d, thread (%u, %u) of block %u multiplies registers that no load of a fragment "
        "left so", state.call_line[state.thread], threadIdx.x, threadIdx.y, blockIdx.x);
}

// Begins a load or a store of a fragment: all lanes of the warp call it with the same address, a
// multiple of 32, and the same pitch in bytes, a multiple of 16.
extern "C" void gg_begin_fragment(const void *first, long long pitch) {
  using namespace gg;
  const int line = state.call_line[state.thread];
  const FragmentAddress mine = {first, pitch};
  const auto &chosen = *reinterpret_cast<const FragmentAddress *>(gg_exchange(&mine, sizeof mine));
  if (chosen.first != first || chosen.pitch != pitch) {
    fault("at line %d, thread (%u, %u) of block %u names another fragment than its warp", line,
          threadIdx.x, threadIdx.y, blockIdx.x);
  }
  const auto offset = static_cast<unsigned>(reinterpret_cast<uintptr_t>(first) % 32);
  if (offset == 0 && pitch % 16 == 0) return;
  Finding finding = {};
  finding.kind = MISALIGNED;
  finding.access = access_at(state.thread, 0, static_cast<uint32_t>(line), 0);
  if (offset != 0) {
    snprintf(finding.detail, sizeof finding.detail,
             "a fragment begins %u bytes after a multiple of 32", offset);
  } else {
    snprintf(finding.detail, sizeof finding.detail,
             "a fragment's lines are %lld bytes apart, no multiple of 16", pitch);
  }
  report_last(finding);
}

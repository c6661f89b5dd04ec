// The model of mma.sync: a warp multiplies 16 x k by k x 8. Each lane holds what the PTX ISA states
// ("Matrix Fragments for mma.m16n8k16 with floating point type", "for mma.m16n8k32", "for
// mma.m16n8k8"): registers of 4 bytes, neighbours along k.
//
// Products are added as the tensor cores of the text's target do (fused_sum.h). Accumulators of
// integers wrap.

#include "fused_sum.h"

namespace gg {
namespace {

constexpr unsigned MAX_STEPS = 32;  // along k

struct Operands {
  float a[16], b[8];
};

// Element `part` of a register.
float part_of(uint32_t word, unsigned part, gg_type type) {
  return number_of(word >> part * 8 * bytes_of(type), type);
}

// What a lane's four accumulators need along k: those of two rows and two columns.
struct Factors {
  double left[MAX_STEPS][4], right[MAX_STEPS][4];
};

[[gnu::optimize("O3")]] void add_all(float *acc, const Factors &of, unsigned k, gg_type of_a,
                                     gg_type of_b) {
  const double least_a = power_of_two(least_exponent(of_a));
  const double least_b = power_of_two(least_exponent(of_b));
  Factors powers;
  for (unsigned at = 0; at < k; ++at) {
    for (unsigned i = 0; i < 4; ++i) {
      powers.left[at][i] = power_of(of.left[at][i], least_a);
      powers.right[at][i] = power_of(of.right[at][i], least_b);
    }
  }
  add_instruction(
      acc, 4, k, sum_rule(),
      [&](unsigned at, unsigned i) { return of.left[at][i] * of.right[at][i]; },
      [&](unsigned at, unsigned i) { return powers.left[at][i] * powers.right[at][i]; });
}

void add_all(unsigned *acc, const Factors &of, unsigned k, gg_type, gg_type) {
  for (unsigned at = 0; at < k; ++at) {
    for (unsigned i = 0; i < 4; ++i) {
      acc[i] += static_cast<unsigned>(static_cast<int>(of.left[at][i] * of.right[at][i]));
    }
  }
}

// Of each operand a lane has the 4 bytes from 4 * (lane % 4) on of 16 along k: of rows lane / 4 and
// 8 more of A, and column lane / 4 of B; then those of the next 16 bytes.
template <unsigned each, typename Sum>
void multiply_words(Sum *acc, const unsigned *a, const unsigned *b, unsigned rows, gg_type of_a,
                    gg_type of_b) {
  Operands mine = {};
  for (unsigned i = 0; i < 2 * rows * each; ++i) {
    mine.a[i] = part_of(a[i / each], i % each, of_a);
  }
  for (unsigned i = 0; i < rows * each; ++i) mine.b[i] = part_of(b[i / each], i % each, of_b);
  const unsigned char *all = gg_exchange(&mine, sizeof mine);
  const auto lane_of = [all](unsigned lane) -> const Operands & {
    return *reinterpret_cast<const Operands *>(all + lane * GG_DEPOSIT);
  };
  const unsigned lane = state.thread % WARP, row = lane / 4, column = lane % 4 * 2;
  Factors of;
  for (unsigned at = 0; at < 4 * rows * each; ++at) {
    const unsigned owner = at / each % 4, part = at % each, next = at / (4 * each);
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned place = (next * 2 + i / 2) * each + part;
      of.left[at][i] = static_cast<double>(lane_of(row * 4 + owner).a[place]);
      const float right = lane_of((column + i % 2) * 4 + owner).b[next * each + part];
      of.right[at][i] = static_cast<double>(right);
    }
  }
  add_all(acc, of, 4 * rows * each, of_a, of_b);
}

// A word's elements are a constant of each, as places are quotients by them.
template <typename Sum>
void multiply(Sum *acc, const unsigned *a, const unsigned *b, unsigned rows, gg_type of_a,
              gg_type of_b) {
  switch (bytes_of(of_a)) {
    case 4: return multiply_words<1>(acc, a, b, rows, of_a, of_b);
    case 2: return multiply_words<2>(acc, a, b, rows, of_a, of_b);
    default: return multiply_words<4>(acc, a, b, rows, of_a, of_b);
  }
}

}  // namespace
}  // namespace gg

extern "C" void gg_mma(float *acc, const unsigned *a, const unsigned *b, unsigned rows, gg_type of_a,
                       gg_type of_b) {
  gg::multiply(acc, a, b, rows, of_a, of_b);
}

extern "C" void gg_mma_of_integers(unsigned *acc, const unsigned *a, const unsigned *b,
                                   unsigned rows, gg_type of_a, gg_type of_b) {
  gg::multiply(acc, a, b, rows, of_a, of_b);
}

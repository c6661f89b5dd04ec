// The model of mma.sync: a warp multiplies 16 x k by k x 8. Each lane holds what the PTX ISA states
// ("Matrix Fragments for mma.m16n8k16 with floating point type", "for mma.m16n8k32", "for
// mma.m16n8k8"): registers of 4 bytes, neighbours along k.
//
// Products are summed by fmaf in the order of k; hardware adds them in an unspecified one.
// Accumulators of integers wrap.

#include "matrix_elements.h"

#include <cmath>

namespace gg {
namespace {

struct Operands {
  float a[16], b[8];
};

// Element `part` of a register.
float part_of(uint32_t word, unsigned part, gg_type type) {
  return number_of(word >> part * 8 * bytes_of(type), type);
}

void multiply_add(float *sum, float a, float b) { *sum = fmaf(a, b, *sum); }
void multiply_add(unsigned *sum, float a, float b) {
  *sum += static_cast<unsigned>(static_cast<int>(a) * static_cast<int>(b));
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
  const unsigned lane = state.thread % WARP;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned row = lane / 4, below = i / 2, column = lane % 4 * 2 + i % 2;
    for (unsigned at = 0; at < 4 * rows * each; ++at) {
      const unsigned owner = at / each % 4, part = at % each, next = at / (4 * each);
      const float left = lane_of(row * 4 + owner).a[(next * 2 + below) * each + part];
      const float right = lane_of(column * 4 + owner).b[next * each + part];
      multiply_add(&acc[i], left, right);
    }
  }
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

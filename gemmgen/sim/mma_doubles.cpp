// The model of mma.sync of f64: a warp multiplies 8 or 16 x k by k x 8. Each lane holds the elements
// that the PTX ISA states ("Matrix Fragments for mma.m8n8k4 with .f64 floating point type", and for
// m16n8k4, m16n8k8 and m16n8k16): single elements, of columns of A 4 apart.
//
// Products are summed by fma in the order of k, as an H200 adds them.

#include "runner.h"

#include <cmath>

namespace gg {
namespace {

struct Doubles {
  double a[8], b[4];
};

}  // namespace
}  // namespace gg

// `rows`: of A's a lane has, 8 apart; `steps`: 4 along k each.
extern "C" void gg_mma_of_doubles(double *acc, const double *a, const double *b, unsigned rows,
                                  unsigned steps) {
  using namespace gg;
  Doubles mine = {};
  for (unsigned i = 0; i < rows * steps; ++i) mine.a[i] = a[i];
  for (unsigned i = 0; i < steps; ++i) mine.b[i] = b[i];
  const unsigned char *all = gg_exchange(&mine, sizeof mine);
  const auto lane_of = [all](unsigned lane) -> const Doubles & {
    return *reinterpret_cast<const Doubles *>(all + lane * GG_DEPOSIT);
  };
  const unsigned lane = state.thread % WARP;
  for (unsigned i = 0; i < 2 * rows; ++i) {
    const unsigned row = lane / 4, below = i / 2, column = lane % 4 * 2 + i % 2;
    for (unsigned at = 0; at < 4 * steps; ++at) {
      const double left = lane_of(row * 4 + at % 4).a[at / 4 * rows + below];
      const double right = lane_of(column * 4 + at % 4).b[at / 4];
      acc[i] = fma(left, right, acc[i]);
    }
  }
}

// Elements of operands of tensor cores, as numbers.
#pragma once

#include "runner.h"

#include <cmath>

namespace gg {

inline unsigned bytes_of(gg_type type) {
  switch (type) {
    case GG_TF32: return 4;
    case GG_F16:
    case GG_BF16: return 2;
    default: return 1;
  }
}

// The element in the lowest bits.  What 32 bits of tf32 hold is PTX's own: no bits of an f32 that no
// conversion has made.  Who reads f32 in shared memory has dropped the others (wgmma_products.cpp).
inline float number_of(uint32_t bits, gg_type type) {
  const auto pair = static_cast<uint16_t>(bits & 0xffu);
  uint32_t halves = bits;
  float number;
  switch (type) {
    case GG_TF32: return bits & 0x1fffu ? NAN : gg_ptx::bits_of<float>(bits);
    case GG_BF16: return gg_ptx::bits_of<float>(bits << 16);
    case GG_S8: return static_cast<int8_t>(bits);
    case GG_E4M3: gg_ptx::cvt_rn_f16x2_e4m3x2(halves, pair); break;
    case GG_E5M2: gg_ptx::cvt_rn_f16x2_e5m2x2(halves, pair); break;
    case GG_F16: break;
  }
  gg_ptx::cvt_f32_f16(number, static_cast<uint16_t>(halves));
  return number;
}

}  // namespace gg

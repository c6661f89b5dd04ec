// Products added as tensor cores do, by the rule of the text's target (gg_sum_rule):
// gemmgen/ir/tensor_core_rules.py says what its members mean.
//
// Products of factors of at most 11 bits are exact in double, also scaled by a power of two, and so
// is a sum of those that are cut off at a common place.
#pragma once

#include "matrix_elements.h"

#include <cstring>

namespace gg {

constexpr unsigned MAX_AT_ONCE = 256;  // accumulators

inline const GgSumRule &sum_rule() {
  if (gg_sum_rule.group == 0) fault("the kernel's target has no rule for adding these products");
  return gg_sum_rule;
}

// The exponent of the least normal number of a type.
inline int least_exponent(gg_type type) {
  if (gg_sum_rule.is_converted) type = GG_F16;
  switch (type) {
    case GG_TF32:
    case GG_BF16: return -126;
    case GG_E4M3: return -6;
    default: return -14;
  }
}

inline double power_of_two(int exponent) {
  return gg_ptx::bits_of<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}

// 2 to the power of a number's exponent, at least `least`; 0 for a zero, and for what isn't finite.
inline double power_of(double number, double least) {
  uint64_t bits;
  memcpy(&bits, &number, sizeof bits);
  bits &= 0x7ff0000000000000;
  double power;
  memcpy(&power, &bits, sizeof power);
  power = power < least ? least : power;
  return number == 0 || bits == 0x7ff0000000000000 ? 0 : power;
}

// An f32 with `bits` after the leading one.  What is not finite stays so; zeros are positive.
inline float toward_zero(double number, unsigned bits) {
  uint64_t kept;
  memcpy(&kept, &number, sizeof kept);
  kept &= ~((uint64_t{1} << (52 - bits)) - 1);
  double found;
  memcpy(&found, &kept, sizeof found);
  const double least = power_of_two(-126), unit = power_of_two(-126 - static_cast<int>(bits));
  const double small = __builtin_trunc(number / unit) * unit;
  return static_cast<float>((__builtin_fabs(number) < least ? small : found) + 0.0);
}

// Adds the products of one group of an instruction, at once, to each of `columns` accumulators.
template <typename Product, typename Power>
[[gnu::always_inline]] inline void add_group(float *acc, unsigned columns, unsigned group,
                                             unsigned k, const GgSumRule &rule, Product product,
                                             Power power) {
  static double largest[MAX_AT_ONCE], total[MAX_AT_ONCE], up[MAX_AT_ONCE];
  const unsigned groups = k / rule.group;
  const unsigned count = groups == 0 ? k : rule.group;
  const auto place = [&](unsigned i) {
    return rule.is_converted ? i / 2 * 2 * groups + 2 * group + i % 2 : group * rule.group + i;
  };
  const double least = power_of_two(rule.least), smallest = power_of_two(-126);
  const double kept = power_of_two(static_cast<int>(rule.fraction));
  for (unsigned c = 0; c < columns; ++c) {
    const double own = power_of(static_cast<double>(acc[c]), smallest);
    largest[c] = own < least ? least : own;
  }
  for (unsigned i = 0; i < count; ++i) {
    const unsigned at = place(i);
    for (unsigned c = 0; c < columns; ++c) {
      const double own = power(at, c);
      largest[c] = largest[c] < own ? own : largest[c];
    }
  }
  for (unsigned c = 0; c < columns; ++c) {
    up[c] = kept / largest[c];
    total[c] = __builtin_trunc(static_cast<double>(acc[c]) * up[c]);
  }
  for (unsigned i = 0; i < count; ++i) {
    const unsigned at = place(i);
    for (unsigned c = 0; c < columns; ++c) total[c] += __builtin_trunc(product(at, c) * up[c]);
  }
  for (unsigned c = 0; c < columns; ++c) {
    acc[c] = toward_zero(total[c] * (largest[c] / kept), rule.bits);
  }
}

// Adds the `k` products of an instruction to each of `columns` accumulators.  product(at, column) and
// power(at, column), that of its factors' exponents, are doubles.
template <typename Product, typename Power>
[[gnu::always_inline]] inline void add_instruction(float *acc, unsigned columns, unsigned k,
                                                   const GgSumRule &rule, Product product,
                                                   Power power) {
  const unsigned groups = k / rule.group < 1 ? 1 : k / rule.group;
  float partial[MAX_AT_ONCE] = {};
  float *const to = rule.is_converted ? partial : acc;
  for (unsigned group = 0; group < groups; ++group) {
    add_group(to, columns, group, k, rule, product, power);
  }
  if (!rule.is_converted) return;
  for (unsigned c = 0; c < columns; ++c) acc[c] += partial[c];
}

}  // namespace gg

// The accumulators of wgmma. Products are added as the tensor cores of the text's target do.

#include "fused_sum.h"
#include "wgmma.h"

namespace gg {
namespace {

constexpr unsigned MAX_STEPS = STEP_BYTES;  // of one byte

constexpr uint32_t TF32_BITS = 0xffffe000;  // of an f32 that is read as it lies

float number_at(const unsigned char *from, gg_type type) {
  uint32_t bits = 0;
  memcpy(&bits, from, bytes_of(type));
  return number_of(type == GG_TF32 ? bits & TF32_BITS : bits, type);
}

// Numbers of an operand, row by row of k.
void take(const Matrix &matrix, gg_type type, unsigned rows, const unsigned char *memory,
          float (*numbers)[MAX_COLUMNS]) {
  const unsigned steps = STEP_BYTES / matrix.element;
  for (unsigned row = 0; row < rows; ++row) {
    for (unsigned k = 0; k < steps; ++k) {
      numbers[k][row] = number_at(memory + offset_in(matrix, row, k), type);
    }
  }
}

// An operand in doubles, and the powers of two of its exponents.
struct Factors {
  double number[MAX_STEPS][MAX_COLUMNS], power[MAX_STEPS][MAX_COLUMNS];
};

void widen(const float (*numbers)[MAX_COLUMNS], gg_type type, unsigned steps, unsigned rows,
           Factors &factors) {
  const double least = power_of_two(least_exponent(type));
  for (unsigned k = 0; k < steps; ++k) {
    for (unsigned row = 0; row < rows; ++row) {
      const auto number = static_cast<double>(numbers[k][row]);
      factors.number[k][row] = number;
      factors.power[k][row] = power_of(number, least);
    }
  }
}

[[gnu::always_inline]] inline void add_products(const Factors &a, const Factors &b, unsigned steps,
                                                unsigned columns, float (*acc)[MAX_COLUMNS]) {
  const GgSumRule rule = sum_rule();
  for (unsigned row = 0; row < WARPGROUP_ROWS; ++row) {
    add_instruction(
        acc[row], columns, steps, rule,
        [&](unsigned k, unsigned column) { return a.number[k][row] * b.number[k][column]; },
        [&](unsigned k, unsigned column) { return a.power[k][row] * b.power[k][column]; });
  }
}

// Sums of integers wrap.
void add_integers(const float (*a)[MAX_COLUMNS], const float (*b)[MAX_COLUMNS], unsigned steps,
                  unsigned columns, uint32_t (*acc)[MAX_COLUMNS]) {
  for (unsigned row = 0; row < WARPGROUP_ROWS; ++row) {
    for (unsigned k = 0; k < steps; ++k) {
      for (unsigned column = 0; column < columns; ++column) {
        acc[row][column] += static_cast<uint32_t>(static_cast<int>(a[k][row] * b[k][column]));
      }
    }
  }
}

#ifdef __x86_64__
[[gnu::target("avx2,fma"), gnu::optimize("O3")]] void add_fast(
    const Factors &a, const Factors &b, unsigned steps, unsigned columns,
    float (*acc)[MAX_COLUMNS]) {
  add_products(a, b, steps, columns, acc);
}
bool is_fast() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#else
constexpr auto add_fast = add_products;
bool is_fast() { return false; }
#endif

}  // namespace

void multiply(const Matrix &a, const Matrix &b, const Multiplication &what,
              const unsigned char *memory, uint32_t (*acc)[MAX_COLUMNS]) {
  static float left[MAX_STEPS][MAX_COLUMNS], right[MAX_STEPS][MAX_COLUMNS];
  static float found[WARPGROUP_ROWS][MAX_COLUMNS];
  take(a, what.a_type, WARPGROUP_ROWS, memory, left);
  take(b, what.b_type, what.columns, memory, right);
  const unsigned steps = STEP_BYTES / a.element;
  if (what.adds_integers) {
    add_integers(left, right, steps, what.columns, acc);
    return;
  }
  static Factors of_a, of_b;
  widen(left, what.a_type, steps, WARPGROUP_ROWS, of_a);
  widen(right, what.b_type, steps, what.columns, of_b);
  memcpy(found, acc, sizeof found);
  (is_fast() ? add_fast : add_products)(of_a, of_b, steps, what.columns, found);
  memcpy(acc, found, sizeof found);
}

}  // namespace gg

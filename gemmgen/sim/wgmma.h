// Multiplications by warpgroups (wgmma): their operands in shared memory, and what a checked build
// asks of them.
//
//   wgmma.cpp           who begins and who waits
//   wgmma_accumulators.cpp      the variables of the accumulators
//   wgmma_operands.cpp  descriptors, and where an element of an operand lies
//   wgmma_products.cpp  the accumulators
//   wgmma_checks.cpp    operands among what happens before what
#pragma once

#include "boxes.h"
#include "mbarriers.h"

namespace gg {

constexpr unsigned WARPGROUP = 128, WARPGROUP_ROWS = 64, MAX_COLUMNS = 256;
constexpr unsigned STEP_BYTES = 32;                    // of an operand along k
constexpr unsigned MAX_ACCUMULATORS = MAX_COLUMNS / 2;         // of a thread

// An operand as its descriptor says: 64 rows of m, or the columns of n, and 32 bytes of k.
struct Matrix {
  uint32_t start, leading, stride;  // bytes
  uint32_t span;                    // bytes of a row, whose chunks change places; 16: they don't
  Swizzle swizzle;
  uint32_t element;                 // bytes
  bool is_mn_major;                   // it lies along m or n, not along k
};

struct Multiplication {
  unsigned columns;
  gg_type a_type, b_type;
  bool adds_integers;
  uint64_t a, b;  // descriptors
  bool a_mn_major, b_mn_major, accumulates;
};

// `rows`: of m, or of n.  Ends the run for a descriptor that is none.
Matrix matrix_of(uint64_t descriptor, gg_type type, bool is_mn_major, unsigned rows,
                 const char *name, const Call &by);

// Where the element of this row, or column, is in shared memory, `k` elements along k.
uint32_t offset_in(const Matrix &matrix, unsigned row, unsigned k);

// accumulators[row][column] += a * b; `memory` is the block's shared memory.
void multiply(const Matrix &a, const Matrix &b, const Multiplication &what,
              const unsigned char *memory, uint32_t (*acc)[MAX_COLUMNS]);

// The variables of the running thread's accumulators. `end` counts its multiplications up to the
// last that changes them, and those that it has waited for.
void reserve_accumulators();
uint16_t take_sum(uint32_t *at, uint32_t end, const Call &by);  // its place: a multiplication begins
uint32_t &held_accumulator(unsigned thread, uint16_t place);
void fence_accumulators();
void get_accumulators(uint32_t end);
void name_sum(uint32_t *at);

// A warp begins its part of the multiplication of this number; the running thread has waited for all
// before `end`.
[[gnu::weak]] void check_operands(const Matrix &a, const Matrix &b, unsigned columns,
                                  uint32_t number, const Call &by);
[[gnu::weak]] void check_multiplied(uint32_t end);

}  // namespace gg

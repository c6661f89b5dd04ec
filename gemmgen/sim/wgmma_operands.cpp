// Operands of wgmma in shared memory: the canonical layouts of the PTX ISA ("Matrix Descriptor
// Format", "Strides").
//
// Along k, 8 rows of 16 bytes (not swizzled) or of a swizzle's span are a group; `stride` is from one
// group to the next, and `leading`, without a swizzle, from one 16 bytes of k to the next.  Along m or
// n, a swizzle's span is an atom column's width, 8 of k are a group, `leading` is from atom column to atom column, and
// `stride` from group to group; without a swizzle the two are the other way round.

#include "matrix_elements.h"
#include "wgmma.h"

#include <cstdio>

namespace gg {
namespace {

constexpr uint64_t RESERVED = 0x3ff1c000c000c000;
constexpr unsigned LINES = 8;  // that a swizzle repeats after
constexpr Swizzle MODES[] = {NO_SWIZZLE, SWIZZLE_128B, SWIZZLE_64B, SWIZZLE_32B};

uint32_t field(uint64_t descriptor, unsigned bit) {
  return static_cast<uint32_t>(descriptor >> bit & 0x3fff) << 4;
}

void check(const Matrix &matrix, const char *name, const Call &by) {
  if (matrix.swizzle == NO_SWIZZLE) return;
  const uint32_t group = LINES * matrix.span, past = matrix.start % group;
  if (past >= matrix.span) {
    stop_at(MISALIGNED, by, "rows of %u bytes of %s begin %u bytes after a multiple of %u",
            matrix.span, name, past, group);
  }
  if (!matrix.is_mn_major && past + STEP_BYTES > matrix.span) {
    stop_at(MISALIGNED, by, "%u bytes of %s from byte %u of rows of %u bytes", STEP_BYTES, name, past,
            matrix.span);
  }
  if (matrix.is_mn_major && past != 0) {
    stop_at(MISALIGNED, by, "%s begins at byte %u of rows of %u bytes", name, past, matrix.span);
  }
  if (matrix.stride % group != 0) {
    stop_at(MISALIGNED, by, "groups of 8 rows of %s are %u bytes apart, no multiple of %u", name,
            matrix.stride, group);
  }
}

}  // namespace

uint32_t offset_in(const Matrix &matrix, unsigned row, unsigned k) {
  const bool is_plain = matrix.swizzle == NO_SWIZZLE, mn_major = matrix.is_mn_major;
  const unsigned along = mn_major ? row : k, across = mn_major ? k : row;
  const unsigned width = matrix.span / matrix.element, chunk = along / width;
  const uint32_t chunks = is_plain == mn_major ? matrix.stride : matrix.leading;
  const uint32_t groups = is_plain && mn_major ? matrix.leading : matrix.stride;
  const uint32_t place = matrix.start + across / LINES * groups + across % LINES * matrix.span;
  if (!mn_major && !is_plain) return swizzled(place + along * matrix.element, matrix.swizzle);
  return swizzled(place + chunk * chunks + along % width * matrix.element, matrix.swizzle);
}

Matrix matrix_of(uint64_t descriptor, gg_type type, bool is_mn_major, unsigned rows,
                 const char *name, const Call &by) {
  const Swizzle swizzle = MODES[descriptor >> 62];
  Matrix matrix = {field(descriptor, 0), field(descriptor, 16), field(descriptor, 32),
                   16u << swizzle, swizzle, bytes_of(type), is_mn_major};
  if ((descriptor & RESERVED) != 0 || (descriptor >> 49 & 7) != 0) {
    stop_at(WRONG_MULTIPLICATION, by, "the descriptor of %s is %#llx, in which bits without a meaning are set", name,
            static_cast<unsigned long long>(descriptor));
  }
  check(matrix, name, by);
  const unsigned steps = STEP_BYTES / matrix.element;
  for (unsigned row = 0; row < rows; ++row) {
    for (unsigned k = 0; k < steps; ++k) {
      const uint32_t offset = offset_in(matrix, row, k);
      if (offset + matrix.element <= state.shared_bytes) continue;
      stop_at(BOUNDS, by, "%s reaches byte %u of shared memory, which has %zu", name, offset,
              state.shared_bytes);
    }
  }
  return matrix;
}

}  // namespace gg

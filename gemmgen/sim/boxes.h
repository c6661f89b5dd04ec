// Boxes of a tensor: where each row of a box lies in global memory and in shared memory.
#pragma once

#include <cstdint>
#include <cstring>

namespace gg {

constexpr unsigned MAX_DIMENSIONS = 5;
constexpr uint32_t MAX_ROW_BYTES = 256 * 8;
constexpr uint32_t UNIT = 16;  // bytes: boxes begin at their multiples, and stores end there

// How bits of an address in shared memory move when rows are swizzled: 16-byte chunks within 32, 64
// or 128 bytes (CU_TENSOR_MAP_SWIZZLE_*).
enum Swizzle : uint32_t { NO_SWIZZLE, SWIZZLE_32B, SWIZZLE_64B, SWIZZLE_128B };

inline uint32_t swizzled(uint32_t offset, uint32_t swizzle) {
  const uint32_t chunks = (1u << swizzle) - 1;  // those that change places
  return offset ^ ((offset >> 7 & chunks) << 4);
}

// A box of a tensor, dimensions innermost first; strides count bytes, the first is an element's.
struct Box {
  unsigned char *base;
  uint32_t rank, swizzle;
  uint64_t sizes[MAX_DIMENSIONS], strides[MAX_DIMENSIONS];
  uint32_t sides[MAX_DIMENSIONS];
  int32_t at[MAX_DIMENSIONS];  // coordinates of its first element, which may be outside the tensor
};

// A row of a box: `inside` of its bytes are the tensor's, from `first` on; `before` and `after` them
// are those outside.  A store writes zeros to this many of those after them as are `padding` of the row of
// the tensor in its last unit.
struct BoxRow {
  uint32_t offset;  // in the box
  unsigned char *first;
  uint32_t before, inside, after, padding;
};

inline uint32_t row_bytes(const Box &box) {
  return box.sides[0] * static_cast<uint32_t>(box.strides[0]);
}

inline uint32_t box_rows(const Box &box) {
  uint32_t rows = 1;
  for (unsigned i = 1; i < box.rank; ++i) rows *= box.sides[i];
  return rows;
}

inline uint32_t box_bytes(const Box &box) { return box_rows(box) * row_bytes(box); }

inline int64_t clamped(int64_t value, int64_t most) {
  return value < 0 ? 0 : value > most ? most : value;
}

inline BoxRow box_row(const Box &box, uint32_t number) {
  const uint32_t bytes = row_bytes(box);
  const auto element = static_cast<int64_t>(box.strides[0]);
  const int64_t side = box.sides[0], from = box.at[0];
  const int64_t low = clamped(-from, side);
  const int64_t high = clamped(static_cast<int64_t>(box.sizes[0]) - from, side);
  BoxRow row = {number * bytes, box.base, 0, 0, bytes, 0};
  uint32_t rest = number;
  bool is_inside = high > low;
  uint64_t place = static_cast<uint64_t>((from + low) * element);
  for (unsigned i = 1; i < box.rank; ++i) {
    const int64_t index = int64_t{box.at[i]} + rest % box.sides[i];
    rest /= box.sides[i];
    is_inside &= index >= 0 && static_cast<uint64_t>(index) < box.sizes[i];
    place += static_cast<uint64_t>(index) * box.strides[i];
  }
  if (!is_inside) return row;
  row.first = box.base + place;
  row.before = static_cast<uint32_t>(low * element);
  row.inside = static_cast<uint32_t>((high - low) * element);
  row.after = bytes - row.before - row.inside;
  const auto rest_of_unit = static_cast<uint32_t>(-(box.sizes[0] * box.strides[0]) % UNIT);
  row.padding = row.after < rest_of_unit ? row.after : rest_of_unit;
  return row;
}

// Copies between `shared`, the beginning of shared memory, and the values of a row, chunk by chunk.
inline void put_row(unsigned char *shared, uint32_t offset, const unsigned char *values,
                    uint32_t bytes, uint32_t swizzle) {
  for (uint32_t at = 0; at < bytes; at += 16) {
    const uint32_t size = bytes - at < 16 ? bytes - at : 16;
    memcpy(shared + swizzled(offset + at, swizzle), values + at, size);
  }
}
inline void take_row(const unsigned char *shared, uint32_t offset, unsigned char *values,
                     uint32_t bytes, uint32_t swizzle) {
  for (uint32_t at = 0; at < bytes; at += 16) {
    const uint32_t size = bytes - at < 16 ? bytes - at : 16;
    memcpy(values + at, shared + swizzled(offset + at, swizzle), size);
  }
}

// Reads the box into shared memory from `target` on; zeros outside the tensor.
inline void load_box(const Box &box, unsigned char *shared, uint32_t target) {
  unsigned char values[MAX_ROW_BYTES];
  for (uint32_t i = 0; i < box_rows(box); ++i) {
    const BoxRow row = box_row(box, i);
    memset(values, 0, row_bytes(box));
    memcpy(values + row.before, row.first, row.inside);
    put_row(shared, target + row.offset, values, row_bytes(box), box.swizzle);
  }
}

// Writes what is inside the tensor, and zeros up to the end of a row's last unit, as an NVIDIA H200
// does.
inline void store_box(const Box &box, const unsigned char *shared, uint32_t source) {
  unsigned char values[MAX_ROW_BYTES];
  for (uint32_t i = 0; i < box_rows(box); ++i) {
    const BoxRow row = box_row(box, i);
    take_row(shared, source + row.offset, values, row_bytes(box), box.swizzle);
    memcpy(row.first, values + row.before, row.inside);
    memset(row.first + row.inside, 0, row.padding);
  }
}

}  // namespace gg

// What TMA asks of a copy, wherever it goes.

#include "box_copies.h"
#include "tensor_map.h"

namespace gg {
namespace {

constexpr uint32_t ALIGNMENT = 128;

Box box_of(const TensorMap &map, const int *at) {
  Box box = {};
  box.base = const_cast<unsigned char *>(map.address);
  box.rank = map.rank;
  box.swizzle = map.swizzle;
  box.strides[0] = bytes_of_type(map.type);
  for (unsigned i = 0; i < map.rank; ++i) {
    box.sizes[i] = map.sizes[i];
    if (i > 0) box.strides[i] = map.strides[i - 1];
    box.sides[i] = map.box[i];
    box.at[i] = at[i];
  }
  return box;
}

void check_map(const TensorMap *map, unsigned rank, const Call &by) {
  if (map == nullptr) stop_at(WRONG_COPY, by, "the address of the tensor map is not that of one");
  if (map->rank != rank) {
    stop_at(WRONG_COPY, by, "%u coordinates, and the tensor map has %u dimensions", rank, map->rank);
  }
  bool is_plain = map->interleave == 0 && map->fill == 0;
  for (unsigned i = 0; i < map->rank; ++i) is_plain &= map->steps[i] == 1;
  if (!is_plain) fault("a tensor map with interleaved, skipped or NaN elements has no model");
}

}  // namespace

BoxCopy box_copy(const void *address, const int *at, unsigned rank, const Place &place,
                 const Call &by) {
  const uint32_t shared = place.offset;
  const TensorMap *map = map_at(address);
  check_map(map, rank, by);
  const Box box = box_of(*map, at);
  const int64_t begin = box.at[0] * static_cast<int64_t>(box.strides[0]);
  if (begin % int64_t{UNIT} != 0) {
    stop_at(MISALIGNED, by, "a box that begins with element %d of a row, at byte %lld, no multiple of %u",
            at[0], static_cast<long long>(begin), UNIT);
  }
  const uint32_t bytes = box_bytes(box);
  if (shared >= state.shared_bytes || bytes > state.shared_bytes - shared) {
    stop_at(BOUNDS, by, "a box of %u bytes at byte %d of shared memory, which has %zu", bytes,
            static_cast<int>(shared), state.shared_bytes);
  }
  if (shared % ALIGNMENT != 0) {
    stop_at(MISALIGNED, by, "a box at shared:%u, %u bytes past a multiple of %u", shared,
            shared % ALIGNMENT, ALIGNMENT);
  }
  return {box, place.rank, shared, bytes, by};
}

}  // namespace gg

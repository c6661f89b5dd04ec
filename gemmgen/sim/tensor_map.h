// A tensor map as the models have it: the 128 bytes that an emitted text calls gg_tensor_map.
//
//   tensor_map.cpp  encodes maps, as the driver's cuTensorMapEncodeTiled does
#pragma once

#include <cstddef>
#include <cstdint>

namespace gg {

constexpr unsigned MAP_RANK = 5;
constexpr uint32_t MAP_MARK = 0x6d746767;

// Dimensions innermost first.  The layout is repeated in gemmgen/sim/launcher_calls.py.
struct TensorMap {
  const unsigned char *address;
  uint64_t sizes[MAP_RANK];        // elements
  uint64_t strides[MAP_RANK - 1];  // bytes; of the second dimension and those after it
  uint16_t box[MAP_RANK];          // elements
  uint8_t steps[MAP_RANK];         // 1: every element of a box
  uint8_t rank, type, interleave, swizzle, promotion, fill;  // the enums' numbers
  uint32_t mark;                   // MAP_MARK: the map has been encoded
  uint8_t unused[20];
};
static_assert(sizeof(TensorMap) == 128, "a CUtensorMap has 128 bytes");

// Bytes of an element of CU_TENSOR_MAP_DATA_TYPE_*, 0 if there is no such type.
unsigned bytes_of_type(unsigned type);

// The map at `map`, which a kernel passes to an instruction; null if none was encoded there.
const TensorMap *map_at(const void *map);

// Keeps a copy of the 128 bytes that a launch passes, until the next launch or call of a launcher.
constexpr unsigned MAX_MAPS = 16;
void *keep_map(const void *map);
unsigned kept_maps();
const TensorMap &kept_map(unsigned index);
void forget_maps();

// The driver's function of this name, as a cudaDriverEntryPointQueryResult says it.
int find_in_driver(const char *name, unsigned version, void **function);

// The calls of cuTensorMapEncodeTiled since `forget_maps`, refused ones included.
uint32_t map_encodings();

// What cuTensorMapEncodeTiled refused last, in words; empty after a map was encoded.
const char *map_refusal();

}  // namespace gg

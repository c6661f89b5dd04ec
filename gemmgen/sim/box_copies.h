// Copies of boxes between tensors and shared memory, which TMA does.
//
//   boxes.h          where the elements of a box lie
//   box_loads.cpp    into shared memory; a barrier counts the bytes that have landed
//   box_stores.cpp   out of shared memory; a thread waits for its own groups
#pragma once

#include "boxes.h"
#include "clusters.h"

namespace gg {

struct BoxCopy {
  Box box;
  uint32_t rank;    // of the block whose shared memory it is in
  uint32_t shared;  // its offset there
  uint32_t bytes;
  Call by;
};

// The copy of the box that begins at coordinates `at` of the tensor with this map; ends the run if
// TMA does not do such a copy.
BoxCopy box_copy(const void *map, const int *at, unsigned rank, const Place &shared,
                 const Call &by);

}  // namespace gg

// What a checked run knows of barriers and of the copy engine.

#include "engine_checks.h"
#include "box_copies.h"
#include "shadow.h"

namespace gg {

// The engine reads the tensor's elements and writes all of the box.
void check_load(const BoxCopy &copy) {
  for (uint32_t i = 0; i < box_rows(copy.box); ++i) {
    const BoxRow row = box_row(copy.box, i);
    if (row.inside != 0) check_engine(row.first, row.inside, false, copy.by.pc);
  }
  check_engine(state.shared + copy.shared, copy.bytes, true, copy.by.pc);
  begin_copy(copy.shared, copy.bytes);
}

void check_load_landed(const BoxCopy &copy, const MBarrier &) {
  end_copy(copy.shared, copy.bytes);
}

void check_store(const BoxCopy &copy) {
  check_engine(state.shared + copy.shared, copy.bytes, false, copy.by.pc);
  for (uint32_t i = 0; i < box_rows(copy.box); ++i) {
    const BoxRow row = box_row(copy.box, i);
    if (row.inside != 0) check_engine(row.first, row.inside, true, copy.by.pc);
  }
}

}  // namespace gg

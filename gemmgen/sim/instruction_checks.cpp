// Checks of single instructions that texts with and without mma.sync have: testp.finite, ldmatrix and
// stmatrix.

#include "runner.h"

#include <cstdio>

// A sum is infinite, or no number: of finite numbers none is, and what is computed again would hide
// that something was read that was not written.
extern "C" void gg_not_finite() {
  using namespace gg;
  if (!state.header.finite) return;
  fault("thread (%u, %u) of block %u has a sum that is not finite, of numbers that are",
        threadIdx.x, threadIdx.y, blockIdx.x);
}

// A row that a lane names to ldmatrix begins at a multiple of 16 bytes.
extern "C" void gg_begin_row(const void *row) {
  using namespace gg;
  const auto offset = static_cast<unsigned>(reinterpret_cast<uintptr_t>(row) % 16);
  if (offset == 0) return;
  Finding finding = {};
  finding.kind = MISALIGNED;
  const int line = state.call_line[state.thread];
  finding.access = access_at(state.thread, 0, static_cast<uint32_t>(line), 0);
  snprintf(finding.detail, sizeof finding.detail,
           "a row of a matrix begins %u bytes after a multiple of 16", offset);
  report_last(finding);
}

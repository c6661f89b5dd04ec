// griddepcontrol.wait.  One kernel runs, so there is none to wait for: what matters is which threads
// have waited when they access global memory (access_checks.cpp).

#include "runner.h"

extern "C" void gg_wait_preceding_grid() {
  using namespace gg;
  state.waited[state.thread] = state.block_interval;
}

// A pre-pass whose threads need one another: it has shared memory, or exchanges of a warp's lanes.

#include "clusters.h"
#include "scheduler.h"

// Runs one block after another, its threads by the scheduler.  Barriers of the block and of warps order them,
// without clocks, whose entries are those of the kernel's threads.
extern "C" void gg_run_pre_pass(void (*thread)()) {
  using namespace gg;
  static void (*entry)();
  entry = thread;
  const unsigned threads = state.threads, cluster = state.cluster, residents = state.residents;
  state.threads = state.residents = blockDim.x;
  state.cluster = 1;
  const uint32_t clocks = state.header.clocks;
  state.header.clocks = 0;
  reserve_fibers(state.residents);
  state.launch_interval = state.interval + 1;
  for (unsigned block = 0; block < gridDim.x; ++block) {
    begin_cluster(block);
    run_threads([] {
      entry();
      leave_block();
    });
  }
  state.threads = threads;
  state.cluster = cluster;
  state.residents = residents;
  state.thread = 0;
  state.header.clocks = clocks;
}

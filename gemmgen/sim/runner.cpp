#include "clusters.h"
#include "scheduler.h"
#include "tensor_map.h"

#include <csignal>
#include <sys/resource.h>
#include <sys/time.h>

GgIndex threadIdx, blockIdx, blockDim, gridDim;

namespace gg {

State state;

namespace {

uint64_t random_state;

void run_thread() {
  gg_call_kernel(state.arguments);
  end_copies();
  end_stores();
  if (end_multiplications != nullptr) end_multiplications();
  leave_block();
}

// A cluster, or a block that is of none.
void run_cluster(uint32_t first_block) {
  begin_cluster(first_block);
  run_threads(run_thread);
  end_loads(0);
  end_mbarriers();
  end_registers();
}

uint32_t greatest_common_divisor(uint32_t a, uint32_t b) {
  while (b != 0) {
    const uint32_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

// The order in which the blocks, or the clusters, of a launch run.  A shuffled one is
// start + i * stride modulo their number, which needs no memory however many there are.
class ClusterOrder {
 public:
  ClusterOrder(uint32_t order, uint32_t count) : order_(order), count_(count) {
    if (order != SHUFFLED || count < 3) return;
    start_ = static_cast<uint32_t>(next_random() % count);
    do {
      stride_ = 1 + static_cast<uint32_t>(next_random() % (count - 1));
    } while (greatest_common_divisor(stride_, count) != 1);
  }
  uint32_t at(uint32_t i) const {
    if (order_ == DESCENDING) return count_ - 1 - i;
    return static_cast<uint32_t>((start_ + uint64_t{i} * stride_) % count_);
  }

 private:
  uint32_t order_, count_;
  uint32_t start_ = 0, stride_ = 1;
};

void launch() {
  const Header &header = state.header;
  if (header.by_launcher != 0 && gg_has_launcher) {
    launch_by_launcher();
  } else if (gg_pass_arguments != nullptr) {
    forget_maps();
    gg_pass_arguments(state.arguments);
  }
  blockDim = {header.block_x, header.block_y, 1};
  gridDim = {header.grid, 1, 1};
  random_state = header.seed;
  reserve_fibers(state.residents);
  state.launch_interval = state.interval + 1;
  const uint32_t clusters = header.grid / state.cluster;
  const ClusterOrder order(header.order, clusters);
  for (uint32_t i = 0; i < clusters; ++i) run_cluster(order.at(i) * state.cluster);
}

// Ends the process by SIGALRM after this many milliseconds; 0 is never.
void set_alarm(uint32_t milliseconds) {
  itimerval timer = {};
  timer.it_value.tv_sec = milliseconds / 1000;
  timer.it_value.tv_usec = milliseconds % 1000 * 1000;
  setitimer(ITIMER_REAL, &timer, nullptr);
}

}  // namespace

uint64_t next_random() {  // splitmix64
  random_state += 0x9e3779b97f4a7c15;
  uint64_t z = random_state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace gg

int main() {
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  gg::install_fault_handlers();
  gg::find_shared();
  // Standard input ends with the parent.  No PR_SET_PDEATHSIG: it fires when the parent's thread
  // ends.
  for (;;) {
    const gg::Request request = gg::read_request();
    if (request == gg::END) return 0;
    if (request == gg::CALLS) continue;
    gg::set_alarm(gg::state.header.milliseconds);
    gg::launch();
    gg::set_alarm(0);
    if (gg::state.found != 0) {
      gg::write_findings(false);
    } else {
      gg::check_bands();
      gg::write_answer();
    }
    gg::unmap_buffers();
  }
}

#include "runner.h"

#include <csignal>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

GgIndex threadIdx, blockIdx, blockDim, gridDim;

namespace gg {

State state;

namespace {

constexpr rlim_t MEMORY_LIMIT = rlim_t{16} << 30;

unsigned order[MAX_THREADS];
uint64_t random_state;

uint64_t next_random() {  // splitmix64
  random_state += 0x9e3779b97f4a7c15;
  uint64_t z = random_state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

void arrange_threads() {
  const unsigned threads = state.threads;
  for (unsigned i = 0; i < threads; ++i) order[i] = state.header.order == 1 ? threads - 1 - i : i;
  if (state.header.order != 2) return;
  for (unsigned i = threads; i > 1; --i) {
    const auto j = static_cast<unsigned>(next_random() % i);
    const unsigned swapped = order[i - 1];
    order[i - 1] = order[j];
    order[j] = swapped;
  }
}

void set_thread(unsigned thread) {
  state.thread = thread;
  threadIdx = {thread % blockDim.x, thread / blockDim.x, 0};
}

void run_thread() {
  gg_call_kernel(state.arguments);
  state.line[state.thread] = 0;
}

// All threads have stopped, each at a barrier or at the end of the kernel.
void check_barrier() {
  for (unsigned thread = 1; thread < state.threads; ++thread) {
    const int first = state.line[0], line = state.line[thread];
    if (line == first) continue;
    const unsigned waits = line == 0 ? 0 : thread, other = line == 0 ? thread : 0;
    if (state.line[other] == 0) {
      fault("divergent barrier in block %u: thread (%u, %u) waits at line %d, "
            "but thread (%u, %u) has left the kernel",
            blockIdx.x, waits % blockDim.x, waits / blockDim.x, state.line[waits],
            other % blockDim.x, other / blockDim.x);
    }
    fault("divergent barrier in block %u: thread (0, 0) waits at line %d, "
          "but thread (%u, %u) waits at line %d",
          blockIdx.x, first, thread % blockDim.x, thread / blockDim.x, line);
  }
}

void run_block() {
  poison_shared();
  for (unsigned thread = 0; thread < state.threads; ++thread) start_fiber(thread, run_thread);
  do {
    arrange_threads();
    for (unsigned i = 0; i < state.threads; ++i) {
      set_thread(order[i]);
      state.running = true;
      resume_fiber(order[i]);
      state.running = false;
    }
    check_barrier();
  } while (state.line[0] != 0);
}

void launch() {
  const Header &header = state.header;
  blockDim = {header.block_x, header.block_y, 1};
  gridDim = {header.grid, 1, 1};
  random_state = header.seed;
  reserve_fibers(state.threads);
  for (unsigned i = 0; i < header.grid; ++i) {
    blockIdx = {header.order == 1 ? header.grid - 1 - i : i, 0, 0};
    run_block();
  }
}

}  // namespace
}  // namespace gg

extern "C" void gg_barrier(int line) {
  gg::state.line[gg::state.thread] = line;
  gg::suspend_fiber();
}

int main() {
  const rlimit memory = {gg::MEMORY_LIMIT, gg::MEMORY_LIMIT}, none = {0, 0};
  setrlimit(RLIMIT_AS, &memory);
  setrlimit(RLIMIT_CORE, &none);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  gg::install_fault_handlers();
  while (gg::read_request()) {
    alarm(gg::state.header.seconds);
    gg::launch();
    alarm(0);
    gg::check_bands();
    gg::write_answer();
    gg::unmap_buffers();
  }
}

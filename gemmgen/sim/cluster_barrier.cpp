// The barrier of a cluster: barrier.cluster.arrive and .wait.  Its phase ends when all threads of all
// blocks have arrived that have not left the kernel.

#include "clusters.h"
#include "scheduler.h"

#include <cstdio>
#include <cstring>

#include "clocks.h"

namespace gg {
namespace {

uint32_t phase;
unsigned present, arrived;  // threads that have not left, and of them those that have arrived
bool has_to_wait[MAX_RESIDENT];  // a thread that has arrived
uint32_t awaits[MAX_RESIDENT];   // the phase that it has arrived in
bool in_phase[MAX_RESIDENT];     // it is the present one
Clock clocks[2];                 // of even and odd phases

bool is_over(const Wait &wait) { return phase != wait.number; }

void describe(const Wait &, char *text, size_t size) {
  snprintf(text, size, "the cluster (to come: %u of %u threads)", present - arrived, present);
}

constexpr Condition CLUSTER_BARRIER = {is_over, describe};

void end_if_complete() {
  if (arrived != present || present == 0) return;
  ++phase;
  arrived = 0;
  memset(in_phase, 0, state.residents * sizeof *in_phase);
  clear(clocks[phase % 2]);
}

void arrive(bool releases, bool is_aligned, const Call &by) {
  if (is_aligned) meet_lanes(by.line, true);
  if (has_to_wait[by.thread]) {
    stop_at(WRONG_BARRIER, by, "barrier.cluster.arrive twice, with no barrier.cluster.wait between");
  }
  has_to_wait[by.thread] = true;
  awaits[by.thread] = phase;
  in_phase[by.thread] = true;
  if (releases) release(clocks[phase % 2]);
  ++arrived;
  end_if_complete();
}

void wait(bool is_aligned, const Call &by) {
  if (is_aligned) meet_lanes(by.line, true);
  if (!has_to_wait[by.thread]) {
    stop_at(WRONG_BARRIER, by, "barrier.cluster.wait without barrier.cluster.arrive");
  }
  const uint32_t number = awaits[by.thread];
  wait_until({&CLUSTER_BARRIER, nullptr, number, by.line});
  has_to_wait[by.thread] = false;
  acquire(clocks[number % 2]);
}

}  // namespace

void begin_cluster_barrier() {
  phase = arrived = 0;
  present = state.residents;
  memset(has_to_wait, 0, state.residents * sizeof *has_to_wait);
  memset(in_phase, 0, state.residents * sizeof *in_phase);
  clear(clocks[0]);
}

void leave_cluster_barrier() {
  --present;
  if (in_phase[state.thread]) --arrived;
  end_if_complete();
}

}  // namespace gg

using namespace gg;

extern "C" {
void gg_barrier_cluster_arrive(bool releases, bool is_aligned) {
  arrive(releases, is_aligned, call_at(__builtin_return_address(0)));
}

void gg_barrier_cluster_wait(bool is_aligned) {
  wait(is_aligned, call_at(__builtin_return_address(0)));
}
}

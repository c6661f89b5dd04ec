// Who can go on: a thread that waits says for what, and the scheduler resumes it once that holds.
#pragma once

#include "runner.h"

namespace gg {

struct Wait;

// A kind of wait.  A null condition is that of a thread which has left the kernel.
struct Condition {
  bool (*holds)(const Wait &wait);
  void (*describe)(const Wait &wait, char *text, size_t size);  // "full[2], parity 1"
};

struct Wait {
  const Condition *condition;
  const void *on;   // what the condition needs to know: a barrier
  uint32_t number;  // and its phase or parity
  int line;         // of the text
};

// Suspends the running thread; it is resumed when the condition holds and its turn comes, which is
// later even if the condition holds now: the scheduler alone decides who goes on.
void wait_until(const Wait &wait);
const Wait &wait_of(unsigned thread);  // of a thread that is suspended

// What the threads have started and does not wait for them, such as TMA.  An agent is
// asked before each round of threads to do a part of what is under way, and returns whether it did.
// `is_stuck`: no thread can go on before one does, which is as late as anything can happen.
using Agent = bool (*)(bool is_stuck);
void add_agent(Agent agent);

// The running thread has issued an asynchronous copy: its warp comes last in one of the orders.
void note_issuer();

void run_threads(void (*entry)());  // of a block or a cluster, until all have left the kernel

// named_barriers.cpp
void begin_block();
bool is_at_block_barrier(unsigned thread);
void check_divergence();  // once no thread can go on: reports one that does not come to the barrier

// warp.cpp
void meet_warps();          // lets those go on whose lanes have all come
// Waits for the running thread's warp, whose lanes must have converged before if so said.
void meet_lanes(int line, bool converged = false);
void converge();  // the running thread's warp has

}  // namespace gg

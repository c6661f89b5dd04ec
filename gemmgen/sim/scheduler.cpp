// The scheduler: rounds of the threads that can go on, in an order; a deadlock if there are none.
//
// In each round every thread that can go on at its beginning runs once.  With strict priorities
// only those of one warp do, the first that can: a warp of low priority waits as long as the
// others let it, which exposes what nothing but luck has ordered.

#include "clusters.h"
#include "scheduler.h"

#include <cstdio>
#include <cstring>

namespace gg {
namespace {

constexpr unsigned MAX_AGENTS = 8;

Wait waits[MAX_RESIDENT];
bool can_run[MAX_RESIDENT];
unsigned order[MAX_RESIDENT];     // of the threads in a round
unsigned priority[MAX_WARPS];    // warps, the first to run first
bool issues_copies[MAX_WARPS];
Agent agents[MAX_AGENTS];
unsigned agent_count;
void (*kernel)();

bool always(const Wait &) { return true; }
void describe_start(const Wait &, char *text, size_t size) { snprintf(text, size, "its start"); }
constexpr Condition START = {always, describe_start};

bool is_strict() { return state.header.order == BY_PRIORITY || state.header.order == ISSUERS_LAST; }

void shuffle(unsigned *numbers, unsigned count) {
  for (unsigned i = count; i > 1; --i) {
    const auto j = static_cast<unsigned>(next_random() % i);
    const unsigned swapped = numbers[i - 1];
    numbers[i - 1] = numbers[j];
    numbers[j] = swapped;
  }
}

unsigned count_warps() { return (state.residents + WARP - 1) / WARP; }

// All warps of one block come before those of another.
void part_priorities() {
  unsigned ranks[MAX_CLUSTER], shuffled[MAX_WARPS], count = 0;
  for (unsigned i = 0; i < state.cluster; ++i) ranks[i] = i;
  shuffle(ranks, state.cluster);
  memcpy(shuffled, priority, sizeof shuffled);
  const unsigned warps = state.threads / WARP;
  for (unsigned i = 0; i < state.cluster; ++i) {
    for (unsigned j = 0; j < count_warps(); ++j) {
      if (shuffled[j] / warps == ranks[i]) priority[count++] = shuffled[j];
    }
  }
}

void draw_priorities() {
  for (unsigned warp = 0; warp < count_warps(); ++warp) priority[warp] = warp;
  if (state.header.order != BY_PRIORITY) return;
  shuffle(priority, count_warps());
  if (state.cluster > 1 && next_random() % 2 == 0) part_priorities();
}

// Block after block, each as a whole.
void arrange_threads() {
  const unsigned threads = state.threads, blocks = state.cluster;
  const bool descending = state.header.order == DESCENDING, shuffled = state.header.order == SHUFFLED;
  unsigned ranks[MAX_CLUSTER];
  for (unsigned i = 0; i < blocks; ++i) ranks[i] = descending ? blocks - 1 - i : i;
  if (shuffled && blocks > 1) shuffle(ranks, blocks);
  for (unsigned block = 0; block < blocks; ++block) {
    unsigned *part = order + block * threads;
    const unsigned first = ranks[block] * threads;
    for (unsigned i = 0; i < threads; ++i) part[i] = first + (descending ? threads - 1 - i : i);
    if (shuffled) shuffle(part, threads);
  }
}

void set_thread(unsigned thread) {
  if (state.cluster > 1) enter_block(thread / state.threads);
  state.thread = thread;
  state.stack = stack_of(thread);
  const unsigned own = thread - state.rank * state.threads;
  threadIdx = {own % blockDim.x, own / blockDim.x, 0};
}

void run_on(unsigned thread) {
  set_thread(thread);
  state.running = true;
  resume_fiber(thread);
  state.running = false;
}

void run_kernel() {
  kernel();
  waits[state.thread] = {};
}

bool find_ready() {
  bool any = false;
  for (unsigned thread = 0; thread < state.residents; ++thread) {
    const Wait &wait = waits[thread];
    can_run[thread] = wait.condition != nullptr && wait.condition->holds(wait);
    any |= can_run[thread];
  }
  return any;
}

bool run_warp(unsigned warp) {
  bool any = false;
  const unsigned end = warp * WARP + WARP;
  for (unsigned thread = warp * WARP; thread < state.residents && thread < end; ++thread) {
    if (!can_run[thread]) continue;
    run_on(thread);
    any = true;
  }
  return any;
}

void run_first_warp() {
  const bool issuers_last = state.header.order == ISSUERS_LAST;
  for (unsigned pass = 0; pass < 2; ++pass) {
    for (unsigned i = 0; i < count_warps(); ++i) {
      const bool now = issuers_last && issues_copies[priority[i]] ? pass == 1 : pass == 0;
      if (now && run_warp(priority[i])) return;
    }
  }
}

void run_round() {
  if (is_strict()) {
    run_first_warp();
    return;
  }
  arrange_threads();
  for (unsigned i = 0; i < state.residents; ++i) {
    if (can_run[order[i]]) run_on(order[i]);
  }
}

bool ask_agents(bool is_stuck) {
  bool any = false;
  for (unsigned i = 0; i < agent_count; ++i) any |= agents[i](is_stuck);
  return any;
}

bool have_all_left() {
  for (unsigned thread = 0; thread < state.residents; ++thread) {
    if (waits[thread].condition != nullptr) return false;
  }
  return true;
}

// What each thread waits for, in words.
char described[MAX_RESIDENT][96];

void describe_waits() {
  for (unsigned thread = 0; thread < state.residents; ++thread) {
    const Wait &wait = waits[thread];
    described[thread][0] = 0;
    if (wait.condition == nullptr) continue;
    wait.condition->describe(wait, described[thread], sizeof described[thread]);
  }
}

bool is_same(unsigned a, unsigned b) {
  if (waits[a].condition != waits[b].condition || waits[a].line != waits[b].line) return false;
  return block_of(a) == block_of(b) && strcmp(described[a], described[b]) == 0;
}

// How many threads of its block wait as `thread` does; 0 if a thread before it does.
unsigned count_like(unsigned thread) {
  unsigned count = 0;
  for (unsigned other = 0; other < state.residents; ++other) {
    if (!is_same(other, thread)) continue;
    if (other < thread) return 0;
    ++count;
  }
  return count;
}

int describe(unsigned thread, unsigned count, char *text, size_t size) {
  const Wait &wait = waits[thread];
  const char *many = count != 1 ? "s" : "", *one = count != 1 ? "" : "s";
  char of[32] = "";
  if (state.cluster > 1) snprintf(of, sizeof of, " of block %u", block_of(thread));
  if (wait.condition == nullptr) {
    return snprintf(text, size, "%u thread%s%s ha%s left", count, many, of,
                    count != 1 ? "ve" : "s");
  }
  return snprintf(text, size, "%u thread%s%s wait%s at line %d for %s", count, many, of, one,
                  wait.line, described[thread]);
}

// Says of each group of threads that wait alike how many they are, and for what.
[[noreturn]] void report_deadlock() {
  Finding finding = {};
  finding.kind = DEADLOCK;
  size_t length = 0;
  describe_waits();
  Access *named = &finding.access;
  for (unsigned thread = 0; thread < state.residents; ++thread) {
    const Wait &wait = waits[thread];
    const unsigned count = count_like(thread);
    if (count == 0) continue;
    if (wait.condition != nullptr && named != nullptr) {
      *named = access_at(thread, 0, static_cast<uint32_t>(wait.line), 0);
      named = named == &finding.access ? &finding.other : nullptr;
    }
    char text[160];
    const int size = describe(thread, count, text, sizeof text);
    const char *before = length != 0 ? "; " : "";
    if (length + static_cast<size_t>(size) + 3 > sizeof finding.detail) continue;
    length += static_cast<size_t>(snprintf(finding.detail + length,
                                           sizeof finding.detail - length, "%s%s", before, text));
  }
  report_last(finding);
}

// No thread can go on and nothing is under way.
[[noreturn]] void report_stuck() {
  for (unsigned thread = 0; thread < state.residents; ++thread) {
    if (waits[thread].condition != nullptr && !is_at_block_barrier(thread)) report_deadlock();
  }
  check_divergence();
  report_deadlock();
}

}  // namespace

void wait_until(const Wait &wait) {
  waits[state.thread] = wait;
  suspend_fiber();
}

const Wait &wait_of(unsigned thread) { return waits[thread]; }

void add_agent(Agent agent) {
  if (agent_count == MAX_AGENTS) fault("more than %u agents", MAX_AGENTS);
  agents[agent_count++] = agent;
}

void note_issuer() { issues_copies[state.thread / WARP] = true; }

void run_threads(void (*entry)()) {
  kernel = entry;
  memset(issues_copies, 0, sizeof issues_copies);
  draw_priorities();
  begin_block();
  for (unsigned thread = 0; thread < state.residents; ++thread) {
    waits[thread] = {&START, nullptr, 0, 0};
    start_fiber(thread, run_kernel);
  }
  for (;;) {
    meet_warps();
    if (agent_count != 0) ask_agents(false);
    if (find_ready()) {
      run_round();
    } else if (have_all_left()) {
      return;
    } else if (!ask_agents(true)) {
      report_stuck();
    }
  }
}

}  // namespace gg

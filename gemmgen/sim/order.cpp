// Happens-before between blocks, from the counters on which both of them counted.
//
// A count releases what its block did before its last barrier; after the next barrier its block
// sees what those that counted there earlier had released.  Where clocks order threads it releases
// what its thread has seen, too, and those see it who have seen the count.

#include "shadow.h"

#include <cstring>
#include <sys/mman.h>

#include "clocks.h"

namespace gg {
namespace {

struct Count {
  const unsigned *counter;
  uint32_t interval, time;
  uint16_t thread;
};

// The counts of a block, or of a cluster, are contiguous, since they run one after another.
struct Block {
  uint32_t launch, first, count;
};

constexpr uint32_t MOST_COUNTS = 1 << 24, MOST_WITH_CLOCKS = 1 << 16;
Count *counts;
uint32_t *seen;  // by the thread of each count, of each thread
Block *blocks;
size_t block_bytes;
uint32_t counted, counted_launch;

void *map(size_t bytes) { return map_memory(bytes, "counts"); }

void prepare_launch() {
  counted_launch = state.launch_interval;
  counted = 0;
  if (counts == nullptr) counts = static_cast<Count *>(map(MOST_COUNTS * sizeof(Count)));
  const size_t bytes = state.header.grid * sizeof(Block);
  if (bytes <= block_bytes) return;
  if (blocks != nullptr) munmap(blocks, block_bytes);
  blocks = static_cast<Block *>(map(bytes));
  block_bytes = bytes;
}

// The first block of the cluster of a block: by itself, if it is of none.
uint32_t first_of(uint32_t block) { return block - block % state.cluster; }

// The counts of a block's cluster; none if it has not counted in this launch.
Block counts_of(uint32_t block) {
  if (counted_launch != state.launch_interval) return {};
  const Block found = blocks[first_of(block)];
  return found.launch == state.launch_interval ? found : Block{};
}

// What a thread did in an interval, at a time.
struct Deed {
  uint32_t interval, time;
  unsigned thread;
};

bool was_published(const Block &theirs, const unsigned *counter, const Deed &deed) {
  for (uint32_t i = 0; i < theirs.count; ++i) {
    const uint32_t number = theirs.first + i;
    const Count &count = counts[number];
    if (count.counter != counter) continue;
    if (deed.interval < count.interval) return true;
    if (seen != nullptr && deed.time <= seen[size_t{number} * state.residents + deed.thread]) {
      return true;
    }
  }
  return false;
}

// What the running thread has seen and done, for others that see its count.
void note_seen(uint32_t number) {
  if (number == MOST_WITH_CLOCKS) fault("blocks count more than %u times", MOST_WITH_CLOCKS);
  const size_t width = state.residents * sizeof *seen;
  if (seen == nullptr) seen = static_cast<uint32_t *>(map(MOST_WITH_CLOCKS * width));
  uint32_t *mine = seen + size_t{number} * state.residents;
  memcpy(mine, times_seen(), width);
  mine[state.thread] = state.time[state.thread];
}

}  // namespace

void note_count(const unsigned *counter) {
  if (counted_launch != state.launch_interval) prepare_launch();
  if (counted == MOST_COUNTS) fault("blocks count more than %u times", MOST_COUNTS);
  Block &mine = blocks[state.first_block];
  if (mine.launch != state.launch_interval) mine = {state.launch_interval, counted, 0};
  if (keeps_clocks()) note_seen(counted);
  const unsigned me = state.thread;
  counts[counted++] = {counter, state.interval, state.time[me], static_cast<uint16_t>(me)};
  if (keeps_clocks()) ++state.time[me];
  ++mine.count;
}

bool precedes_now(uint32_t block, uint32_t interval, uint16_t thread, uint32_t time) {
  const auto is_seen = [](uint32_t earlier, uint16_t by, uint32_t at) {
    if (earlier < state.interval || by == state.thread) return true;
    return keeps_clocks() && has_seen(by, at);
  };
  if (first_of(block) == state.first_block) return is_seen(interval, thread, time);
  const Block theirs = counts_of(block), mine = counts_of(blockIdx.x);
  for (uint32_t i = 0; i < mine.count; ++i) {
    const Count &count = counts[mine.first + i];
    if (!is_seen(count.interval, count.thread, count.time)) continue;
    if (was_published(theirs, count.counter, {interval, time, thread})) return true;
  }
  return false;
}

}  // namespace gg

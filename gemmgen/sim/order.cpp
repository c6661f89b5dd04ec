// Happens-before between blocks, from the counters on which both of them counted.
//
// A count releases what its block did before its last barrier; after the next barrier its block
// sees what those that counted there earlier had released.

#include "shadow.h"

#include <sys/mman.h>

namespace gg {
namespace {

struct Count {
  const unsigned *counter;
  uint32_t interval;
  uint16_t thread;
};

// A block's counts are contiguous, since blocks run one after another.
struct Block {
  uint32_t launch, first, count;
};

constexpr uint32_t MOST_COUNTS = 1 << 24;
Count *counts;
Block *blocks;
size_t block_bytes;
uint32_t counted, counted_launch;

void *map(size_t bytes) {
  void *mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) fault("no memory for the %zu bytes of counts", bytes);
  return mapping;
}

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

// The counts of a block; none if it has not counted in this launch.
Block counts_of(uint32_t block) {
  if (counted_launch != state.launch_interval) return {};
  const Block found = blocks[block];
  return found.launch == state.launch_interval ? found : Block{};
}

bool was_published(const Block &theirs, const unsigned *counter, uint32_t interval) {
  for (uint32_t i = 0; i < theirs.count; ++i) {
    const Count &count = counts[theirs.first + i];
    if (count.counter == counter && interval < count.interval) return true;
  }
  return false;
}

}  // namespace

void note_count(const unsigned *counter) {
  if (counted_launch != state.launch_interval) prepare_launch();
  if (counted == MOST_COUNTS) fault("blocks count more than %u times", MOST_COUNTS);
  Block &mine = blocks[blockIdx.x];
  if (mine.launch != state.launch_interval) mine = {state.launch_interval, counted, 0};
  counts[counted++] = {counter, state.interval, static_cast<uint16_t>(state.thread)};
  ++mine.count;
}

bool precedes_now(uint32_t block, uint32_t interval, uint16_t thread) {
  if (block == blockIdx.x) return interval < state.interval || thread == state.thread;
  const Block theirs = counts_of(block), mine = counts_of(blockIdx.x);
  for (uint32_t i = 0; i < mine.count; ++i) {
    const Count &count = counts[mine.first + i];
    const bool is_seen = count.interval < state.interval || count.thread == state.thread;
    if (is_seen && was_published(theirs, count.counter, interval)) return true;
  }
  return false;
}

}  // namespace gg

#include "shadow.h"

#include <cstdio>
#include <cstring>
#include <sys/mman.h>

#include "clocks.h"
#include "clusters.h"

namespace gg {
namespace {

// The latest accesses of a word, and their intervals.  As interval numbers are never reused, cells
// of an earlier block or launch need no clearing.
struct Cell {
  uint32_t written, read;  // intervals; 0 is never
  uint32_t write_block, read_block;
  uint32_t write_pc, read_pc;
  uint32_t under_way;  // the first interval of the block whose asynchronous copy is outstanding
  uint16_t writer, reader, second_reader;
  bool atomic;  // the write was
  // The previous write, if it was another block's and both were atomic; 0 is never.
  uint32_t added, add_block, add_pc;
  uint16_t adder;
  uint16_t write_actor;  // the writer, or work that it has started
  uint32_t write_time, read_time;
  uint32_t other_time;  // of the second reader, or of the previous write
};
static_assert(sizeof(Cell) == 64, "a line of the cache");

Cell *shared_cells;
Cell *tensor_cells[MAX_ARGUMENTS];  // of the tensors that the kernel writes
size_t tensor_bytes[MAX_ARGUMENTS];
uint32_t prepared_launch;
size_t shared_words;    // of each block
size_t word_bytes = 4;  // bytes for each cell: the smallest element of the kernel

Cell *map_cells(size_t bytes) { return static_cast<Cell *>(map_memory(bytes, "shadow")); }

Cell &shared_cell(unsigned rank, size_t word) { return shared_cells[rank * shared_words + word]; }

size_t count_elements(const Tensor &tensor) {
  size_t count = 1;
  for (unsigned i = 0; i < tensor.rank; ++i) count *= tensor.shape[i];
  return count;
}

void prepare_launch() {
  prepared_launch = state.launch_interval;
  word_bytes = state.header.word;
  if (shared_cells == nullptr && state.shared_bytes != 0) {
    shared_words = state.shared_bytes / word_bytes + 1;
    shared_cells = map_cells(gg_cluster_blocks * shared_words * sizeof(Cell));
  }
  for (unsigned i = 0; i < state.header.tensors; ++i) {
    const Tensor &tensor = state.tensors[i];
    const size_t bytes = count_elements(tensor) * (tensor.element / word_bytes) * sizeof(Cell);
    if (!state.buffers[tensor.buffer].head.writable || bytes <= tensor_bytes[i]) continue;
    if (tensor_cells[i] != nullptr) munmap(tensor_cells[i], tensor_bytes[i]);
    tensor_cells[i] = map_cells(bytes);
    tensor_bytes[i] = bytes;
  }
}

// Whether the memory holds the pattern with which g++ fills variables that are never set.  Results
// show the use of one, except in a product with zero, as past the last tile.  Elements of one byte
// are not checked: they may equal the pattern by chance, as four times -2 does; and half an element
// of four bytes may, so that of an access of two bytes the whole element is looked at.
bool holds_pattern(const Touch &touch, const unsigned char *memory) {
  constexpr uint32_t PATTERN = 0xfefefefe;
  if (touch.bytes < 2 || word_bytes < 2) return false;
  if (touch.bytes < word_bytes) {
    memory -= reinterpret_cast<uintptr_t>(memory) % word_bytes;
    return memcmp(memory, &PATTERN, sizeof PATTERN) == 0;
  }
  if (touch.bytes < sizeof PATTERN) return memcmp(memory, &PATTERN, touch.bytes) == 0;
  for (size_t at = 0; at + sizeof PATTERN <= touch.bytes; at += sizeof PATTERN) {
    if (memcmp(memory + at, &PATTERN, sizeof PATTERN) == 0) return true;
  }
  return false;
}

// Whether what `actor` did at `time` of this interval happens before the running thread's next
// step: by a barrier of their warp, or by clocks.
bool precedes(unsigned actor, uint32_t time) {
  if (keeps_clocks()) return has_seen(actor, time);
  return actor / WARP == state.thread / WARP && time < state.time[state.thread];
}

// Keeps two of the threads that read a word in an interval: the first, and another, of another warp
// if there is one.  A reader that a barrier of its warp orders before the current thread is
// replaced.
void keep_reader(Cell &cell) {
  const auto me = static_cast<uint16_t>(state.thread);
  const uint32_t time = state.time[me];
  if (cell.read != state.interval || precedes(cell.reader, cell.read_time)) {
    if (cell.read != state.interval) cell.second_reader = NO_THREAD;
    cell.read = state.interval;
    cell.reader = me;
    cell.read_time = time;
  } else if (cell.reader != me && (cell.second_reader == NO_THREAD ||
                                   cell.second_reader / WARP == cell.reader / WARP ||
                                   precedes(cell.second_reader, cell.other_time))) {
    cell.second_reader = me;
    cell.other_time = time;
  }
}

// A thread that read the word in this interval without a barrier before the current write.
uint16_t conflicting_reader(const Cell &cell) {
  const auto me = static_cast<uint16_t>(state.thread);
  if (cell.read != state.interval) return NO_THREAD;
  if (cell.reader != me && !precedes(cell.reader, cell.read_time)) return cell.reader;
  if (cell.second_reader == me || cell.second_reader == NO_THREAD) return NO_THREAD;
  return precedes(cell.second_reader, cell.other_time) ? NO_THREAD : cell.second_reader;
}

Access access_by(unsigned actor, uint32_t pc, bool write) {
  if (actor < state.residents) return access_at(actor, pc, 0, write);
  const unsigned number = actor - state.residents;
  const bool is_multiplier = number % BESIDE >= OF_BARRIERS + OF_STORERS;
  const uint32_t beside = is_multiplier ? BY_TENSOR_CORE : BESIDE_THREAD;
  return access_at(state.starter[number], pc, 0, write | beside);
}

// Shared memory belongs to the block: only the current interval matters.
void touch_word(size_t word, const Touch &touch, const Where &where, unsigned actor) {
  Cell &cell = shared_cell(touch.rank, word);
  const auto me = static_cast<uint16_t>(state.thread);
  const uint32_t now = state.interval;
  if (cell.under_way == state.block_interval) {
    report(found(UNDER_WAY, touch, where, access_by(cell.write_actor, cell.write_pc, true)));
    return;
  }
  const unsigned writer = cell.write_actor;
  const auto write = [&] { return access_by(writer, cell.write_pc, true); };
  const bool is_recent = cell.written == now || writer >= state.residents;  // no barrier ends work
  if (is_recent && writer != me && writer != actor && !precedes(writer, cell.write_time)) {
    report(found(RACE, touch, where, write()));
  }
  const bool is_written = cell.written >= state.block_interval;
  const bool crosses = is_written && actor != me && writer < state.residents;  // between proxies
  if (crosses && !is_published(writer, cell.write_time)) {
    report(found(UNFENCED, touch, where, write()));
  }
  if (!touch.write) {
    if (!is_written) report(found(UNWRITTEN, touch, where));
    if (keeps_clocks()) {
      note_read(touch.rank, word, actor);
    } else {
      keep_reader(cell);
    }
    cell.read_pc = touch.pc;
    return;
  }
  const unsigned reader = keeps_clocks() ? find_unseen_read(touch.rank, word) : conflicting_reader(cell);
  if (reader != NO_THREAD) {
    report(found(RACE, touch, where, access_by(reader, cell.read_pc, false)));
  } else if (actor >= state.residents) {
    const unsigned overtaken = find_unpublished_read(touch.rank, word);
    if (overtaken != NO_THREAD) {
      report(found(UNFENCED, touch, where, access_by(overtaken, cell.read_pc, false)));
    }
  }
  cell.written = now;
  cell.writer = me;
  cell.write_actor = static_cast<uint16_t>(actor);
  cell.write_time = state.time[actor];
  cell.write_pc = touch.pc;
}

// An element of a tensor has one writer in the whole launch; if the tensor is shared, writers are
// ordered or atomic.  The first block's reader is kept: only counters order blocks.
void touch_element(Cell &cell, const Touch &touch, const Where &where, const Tensor &tensor) {
  const auto me = static_cast<uint16_t>(state.thread);
  const uint32_t now = state.interval, block = blockIdx.x;
  const bool was_written = cell.written >= state.launch_interval;
  const bool was_read = cell.read >= state.launch_interval;
  const bool same_writer = cell.writer == me && cell.write_block == block;
  if (was_written && !same_writer) {
    const Access writer = {cell.write_pc, 0, cell.write_block, cell.writer % state.threads, 1};
    if (touch.write && !tensor.shared) {
      report(found(TWO_OWNERS, touch, where, writer));
    } else if (!(touch.atomic && cell.atomic) &&
               !precedes_now(cell.write_block, cell.written, cell.writer, cell.write_time)) {
      report(found(RACE, touch, where, writer));
    }
  }
  if (!touch.atomic && was_written && cell.atomic && cell.added >= state.launch_interval &&
      !precedes_now(cell.add_block, cell.added, cell.adder, cell.other_time)) {
    report(found(RACE, touch, where, {cell.add_pc, 0, cell.add_block, cell.adder % state.threads, 1}));
  }
  const bool reads = !touch.write || touch.atomic;
  if (reads && !was_written && !tensor.readable) report(found(UNWRITTEN, touch, where));
  if (!touch.write) {
    if (was_read && cell.read_block != block) return;
    cell.read = now;
    cell.read_block = block;
    cell.reader = me;
    cell.read_time = state.time[me];
    cell.read_pc = touch.pc;
    return;
  }
  if (was_read && !precedes_now(cell.read_block, cell.read, cell.reader, cell.read_time)) {
    report(found(RACE, touch, where, {cell.read_pc, 0, cell.read_block, cell.reader % state.threads, 0}));
  }
  if (!touch.atomic || !was_written) {
    cell.added = 0;
  } else if (cell.atomic && cell.write_block != block) {
    cell.added = cell.written;
    cell.add_block = cell.write_block;
    cell.adder = cell.writer;
    cell.other_time = cell.write_time;
    cell.add_pc = cell.write_pc;
  }
  cell.written = now;
  cell.write_block = block;
  cell.writer = me;
  cell.write_time = state.time[me];
  cell.write_pc = touch.pc;
  cell.atomic = touch.atomic;
}

}  // namespace

Finding found(Kind kind, const Touch &touch, const Where &where, const Access &other) {
  Finding finding = {};
  finding.kind = kind;
  finding.target = where.target;
  finding.index = where.index;
  finding.bytes = touch.bytes;
  finding.offset = where.offset;
  finding.access = access_at(state.thread, touch.pc, 0,
                             touch.write | touch.beside);
  finding.other = other;
  if (where.target == SHARED && touch.rank != state.rank) {
    const uint32_t block = state.first_block + touch.rank;
    snprintf(finding.detail, sizeof finding.detail, "of block %u", block);
  }
  return finding;
}

void touch_shared(const Touch &touch, const Where &where, size_t offset, unsigned actor) {
  if (prepared_launch != state.launch_interval) prepare_launch();
  if (!touch.write && holds_pattern(touch, memory_of(touch.rank) + offset)) {
    report(found(UNWRITTEN, touch, where));
  }
  for (size_t word = 0; word < touch.bytes; word += word_bytes) {
    touch_word((offset + word) / word_bytes, touch, where, actor);
  }
}

void begin_copy(size_t offset, size_t bytes, unsigned rank) {
  for (size_t word = 0; word < bytes; word += word_bytes) {
    shared_cell(rank, (offset + word) / word_bytes).under_way = state.block_interval;
  }
}

void end_copy(size_t offset, size_t bytes, unsigned rank, unsigned actor) {
  for (size_t word = 0; word < bytes; word += word_bytes) {
    Cell &cell = shared_cell(rank, (offset + word) / word_bytes);
    cell.under_way = 0;
    cell.written = state.interval;
    cell.write_time = state.time[actor];
  }
}

void touch_tensor(const Touch &touch, const Where &where, size_t element) {
  if (prepared_launch != state.launch_interval) prepare_launch();
  const Tensor &tensor = state.tensors[where.index];
  Cell *cells = tensor_cells[where.index] + element * (tensor.element / word_bytes);
  for (size_t word = 0; word < touch.bytes / word_bytes; ++word) {
    touch_element(cells[word], touch, where, tensor);
  }
}

}  // namespace gg

// The callbacks of -fsanitize=thread, one before each load and store, without its runtime.

#include "runner.h"

#include <cstring>
#include <sys/mman.h>

namespace gg {
namespace {

// The smallest element, f32: a word has one cell of shadow, and so one owner at a time.
constexpr size_t WORD = 4;
constexpr uint16_t NOBODY = MAX_THREADS;

// Who touched a word last, and in which interval.  As intervals are never numbered twice, cells of
// an earlier block or launch need no clearing.
struct Cell {
  uint32_t written, read;  // intervals; 0 is never
  uint32_t write_block, read_block;
  uint32_t write_pc, read_pc;
  uint16_t writer, reader, second_reader;
};

struct Touch {
  const unsigned char *address;
  uint32_t bytes;
  bool write;
  uint32_t pc;  // the program is linked below 4 GiB
};

// Which array is touched, and how far into it.
struct Where {
  Target target;
  unsigned index;
  int64_t offset;  // bytes
};

Cell *shared_cells;
Cell *tensor_cells[MAX_ARGUMENTS];  // of the tensors that the kernel writes
size_t tensor_bytes[MAX_ARGUMENTS];
uint32_t prepared_launch;

Cell *map_cells(size_t bytes) {
  void *mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) fault("no memory for the %zu bytes of shadow", bytes);
  return static_cast<Cell *>(mapping);
}

size_t count_elements(const Tensor &tensor) {
  size_t count = 1;
  for (unsigned i = 0; i < tensor.rank; ++i) count *= tensor.shape[i];
  return count;
}

void prepare_launch() {
  prepared_launch = state.launch_interval;
  if (shared_cells == nullptr && state.shared_bytes != 0) {
    shared_cells = map_cells((state.shared_bytes / WORD + 1) * sizeof(Cell));
  }
  for (unsigned i = 0; i < state.header.tensors; ++i) {
    const Tensor &tensor = state.tensors[i];
    const size_t bytes = count_elements(tensor) * (tensor.element / WORD) * sizeof(Cell);
    if (!state.buffers[tensor.buffer].head.writable || bytes <= tensor_bytes[i]) continue;
    if (tensor_cells[i] != nullptr) munmap(tensor_cells[i], tensor_bytes[i]);
    tensor_cells[i] = map_cells(bytes);
    tensor_bytes[i] = bytes;
  }
}

Finding found(Kind kind, const Touch &touch, const Where &where, const Access &other = {}) {
  Finding finding = {};
  finding.kind = kind;
  finding.target = where.target;
  finding.index = where.index;
  finding.bytes = touch.bytes;
  finding.offset = where.offset;
  finding.access = {touch.pc, 0, blockIdx.x, state.thread, touch.write};
  finding.other = other;
  return finding;
}

// What g++ fills a variable with that is never set.  A run shows it where it is used, but for a
// product with zero, as beyond the last tile.
bool holds_pattern(const Touch &touch) {
  constexpr uint32_t PATTERN = 0xfefefefe;
  for (size_t word = 0; word + WORD <= touch.bytes; word += WORD) {
    uint32_t value;
    memcpy(&value, touch.address + word, sizeof value);
    if (value == PATTERN) return true;
  }
  return false;
}

// Shared memory is the block's: only its running interval matters.
void touch_shared(Cell &cell, const Touch &touch, const Where &where) {
  const auto me = static_cast<uint16_t>(state.thread);
  const uint32_t now = state.interval;
  if (cell.written == now && cell.writer != me) {
    report(found(RACE, touch, where, {cell.write_pc, 0, blockIdx.x, cell.writer, 1}));
  }
  if (!touch.write) {
    if (cell.written < state.block_interval || holds_pattern(touch)) {
      report(found(UNWRITTEN, touch, where));
    }
    if (cell.read != now) {
      cell.read = now;
      cell.reader = me;
      cell.second_reader = NOBODY;
    } else if (cell.reader != me) {
      cell.second_reader = me;
    }
    cell.read_pc = touch.pc;
    return;
  }
  if (cell.read == now) {
    const uint16_t reader = cell.reader != me ? cell.reader : cell.second_reader;
    if (reader != me && reader != NOBODY) {
      report(found(RACE, touch, where, {cell.read_pc, 0, blockIdx.x, reader, 0}));
    }
  }
  cell.written = now;
  cell.writer = me;
  cell.write_pc = touch.pc;
}

// An element of a tensor has one writer in the whole launch.  Of its readers the first block's are
// remembered: blocks are ordered by nothing.
void touch_element(Cell &cell, const Touch &touch, const Where &where, bool readable) {
  const auto me = static_cast<uint16_t>(state.thread);
  const uint32_t now = state.interval, block = blockIdx.x;
  const bool was_written = cell.written >= state.launch_interval;
  const bool was_read = cell.read >= state.launch_interval;
  const bool same_writer = cell.writer == me && cell.write_block == block;
  if (was_written && !same_writer) {
    const Access writer = {cell.write_pc, 0, cell.write_block, cell.writer, 1};
    if (touch.write) {
      report(found(TWO_OWNERS, touch, where, writer));
    } else if (cell.write_block != block || cell.written == now) {
      report(found(RACE, touch, where, writer));
    }
  }
  if (!touch.write) {
    if (!was_written && !readable) report(found(UNWRITTEN, touch, where));
    if (was_read && cell.read_block != block) return;
    cell.read = now;
    cell.read_block = block;
    cell.reader = me;
    cell.read_pc = touch.pc;
    return;
  }
  if (was_read && (cell.read_block != block || (cell.read == now && cell.reader != me))) {
    report(found(RACE, touch, where, {cell.read_pc, 0, cell.read_block, cell.reader, 0}));
  }
  cell.written = now;
  cell.write_block = block;
  cell.writer = me;
  cell.write_pc = touch.pc;
}

// The shared array that holds all of the access, or MAX_SHARED_ARRAYS.
unsigned find_array(size_t offset, size_t bytes) {
  for (unsigned i = 0; i < state.header.shared_arrays; ++i) {
    const SharedArray &array = state.shared_arrays[i];
    if (offset >= array.offset && offset + bytes <= array.offset + array.bytes) return i;
  }
  return MAX_SHARED_ARRAYS;
}

void check_shared(const Touch &touch, size_t offset) {
  const unsigned index = find_array(offset, touch.bytes);
  if (index == MAX_SHARED_ARRAYS) {
    report_last(found(BOUNDS, touch, {SHARED, index, static_cast<int64_t>(offset)}));
  }
  const auto within = static_cast<int64_t>(offset - state.shared_arrays[index].offset);
  const Where where = {SHARED, index, within};
  for (size_t word = 0; word < touch.bytes; word += WORD) {
    touch_shared(shared_cells[(offset + word) / WORD], touch, where);
  }
}

uint64_t divide(uint64_t offset, uint64_t stride) {
  if ((offset | stride) >> 32 != 0) return offset / stride;
  return static_cast<uint32_t>(offset) / static_cast<uint32_t>(stride);  // takes half the time
}

// Which element of the tensor, counted in its logical order, the access begins with; -1 where it
// is not wholly within one row of it.
int64_t find_element(const Tensor &tensor, uint64_t offset, size_t bytes) {
  uint64_t element = 0;
  const unsigned last = tensor.rank - 1;
  for (unsigned i = 0; i < last; ++i) {
    const uint64_t index = divide(offset, tensor.strides[i]);
    if (index >= tensor.shape[i]) return -1;
    offset -= index * tensor.strides[i];
    element = (element + index) * tensor.shape[i + 1];
  }
  if (offset + bytes > tensor.shape[last] * tensor.element) return -1;
  return static_cast<int64_t>(element + offset / tensor.element);
}

const unsigned char *data_of(const Tensor &tensor) {
  return state.buffers[tensor.buffer].data + tensor.offset;
}

bool check_tensor(unsigned index, const Touch &touch) {
  const Tensor &tensor = state.tensors[index];
  const unsigned char *data = data_of(tensor);
  if (touch.address < data) return false;
  const auto offset = static_cast<uint64_t>(touch.address - data);
  const int64_t element = find_element(tensor, offset, touch.bytes);
  if (element < 0) return false;
  const bool writable = state.buffers[tensor.buffer].head.writable;
  if (!writable && !touch.write) return true;
  const Where where = {TENSOR, index, static_cast<int64_t>(offset)};
  if (!writable) report_last(found(BOUNDS, touch, where));
  Cell *cells = tensor_cells[index] + static_cast<size_t>(element) * (tensor.element / WORD);
  for (size_t word = 0; word < touch.bytes / WORD; ++word) {
    touch_element(cells[word], touch, where, tensor.readable != 0);
  }
  return true;
}

// The tensor whose memory is nearest to the address: the one that was meant.
[[noreturn]] void report_outside(const Touch &touch) {
  unsigned nearest = 0;
  uint64_t least = UINT64_MAX;
  for (unsigned i = 0; i < state.header.tensors; ++i) {
    const Tensor &tensor = state.tensors[i];
    const unsigned char *data = data_of(tensor), *end = data;
    for (unsigned j = 0; j < tensor.rank; ++j) end += tensor.shape[j] * tensor.strides[j];
    const auto distance = static_cast<uint64_t>(touch.address < data  ? data - touch.address
                                                : touch.address > end ? touch.address - end
                                                                      : 0);
    if (distance >= least) continue;
    nearest = i;
    least = distance;
  }
  const Target target = state.header.tensors != 0 ? TENSOR : NOTHING;
  const unsigned char *base = target == TENSOR ? data_of(state.tensors[nearest]) : nullptr;
  report_last(found(BOUNDS, touch, {target, nearest, touch.address - base}));
}

// The kernel's arguments, threadIdx and the like, and constants.
bool in_program(const unsigned char *address) {
  extern const unsigned char begin __asm__("__executable_start"), end __asm__("_end");
  return address >= &begin && address < &end;
}

void check_other(const Touch &touch) {
  if (!touch.write && in_program(touch.address)) return;
  for (unsigned i = 0; i < state.header.tensors; ++i) {
    if (check_tensor(i, touch)) return;
  }
  report_outside(touch);
}

void report_misaligned(const Touch &touch) {
  const auto offset = static_cast<size_t>(touch.address - state.shared);
  const unsigned index = offset < state.shared_bytes ? find_array(offset, 1) : MAX_SHARED_ARRAYS;
  if (index != MAX_SHARED_ARRAYS) {
    const auto within = static_cast<int64_t>(offset - state.shared_arrays[index].offset);
    report_last(found(MISALIGNED, touch, {SHARED, index, within}));
  }
  for (unsigned i = 0; i < state.header.tensors; ++i) {
    const Tensor &tensor = state.tensors[i];
    const unsigned char *data = data_of(tensor);
    if (touch.address < data) continue;
    const auto distance = static_cast<uint64_t>(touch.address - data);
    if (find_element(tensor, distance, 1) < 0) continue;
    report_last(found(MISALIGNED, touch, {TENSOR, i, static_cast<int64_t>(distance)}));
  }
  report_last(found(MISALIGNED, touch, {NOTHING, 0, 0}));
}

inline void check(const Touch &touch, bool aligned) {
  if (!state.running) return;
  const auto stack_offset = static_cast<size_t>(touch.address - state.stack);
  if (stack_offset < STACK_BYTES) return;
  if (prepared_launch != state.launch_interval) prepare_launch();
  const auto place = reinterpret_cast<uintptr_t>(touch.address);
  if (aligned && place % touch.bytes != 0) report_misaligned(touch);
  const auto offset = static_cast<size_t>(touch.address - state.shared);
  if (offset < state.shared_bytes) {
    check_shared(touch, offset);
  } else {
    check_other(touch);
  }
}

}  // namespace
}  // namespace gg

#define GG_PC static_cast<uint32_t>(reinterpret_cast<uintptr_t>(__builtin_return_address(0)))
#define GG_CALLBACK(name, bytes, write, aligned)                             \
  void name(const void *address) {                                           \
    const auto *first = static_cast<const unsigned char *>(address);         \
    gg::check({first, bytes, write, GG_PC}, aligned);                        \
  }
#define GG_CALLBACKS(bytes)                                                  \
  GG_CALLBACK(__tsan_read##bytes, bytes, false, true)                        \
  GG_CALLBACK(__tsan_write##bytes, bytes, true, true)                        \
  GG_CALLBACK(__tsan_unaligned_read##bytes, bytes, false, false)             \
  GG_CALLBACK(__tsan_unaligned_write##bytes, bytes, true, false)             \
  GG_CALLBACK(__tsan_volatile_read##bytes, bytes, false, true)               \
  GG_CALLBACK(__tsan_volatile_write##bytes, bytes, true, true)

extern "C" {
GG_CALLBACKS(1)
GG_CALLBACKS(2)
GG_CALLBACKS(4)
GG_CALLBACKS(8)
GG_CALLBACKS(16)

void __tsan_read_range(const void *address, size_t bytes) {
  const auto *first = static_cast<const unsigned char *>(address);
  gg::check({first, static_cast<uint32_t>(bytes), false, GG_PC}, false);
}
void __tsan_write_range(const void *address, size_t bytes) {
  const auto *first = static_cast<const unsigned char *>(address);
  gg::check({first, static_cast<uint32_t>(bytes), true, GG_PC}, false);
}
void __tsan_init() {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit() {}
}

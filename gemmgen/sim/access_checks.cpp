// The callbacks of -fsanitize=thread, one before each load and store, without its runtime.

#include "shadow.h"

#include <cstdio>

namespace gg {
namespace {

// The shared array that holds all of the access, or MAX_SHARED_ARRAYS.
unsigned find_array(size_t offset, size_t bytes) {
  for (unsigned i = 0; i < state.header.shared_arrays; ++i) {
    const SharedArray &array = state.shared_arrays[i];
    if (offset >= array.offset && offset + bytes <= array.offset + array.bytes) return i;
  }
  return MAX_SHARED_ARRAYS;
}

void check_shared(const Touch &touch, size_t offset, unsigned actor = state.thread) {
  const unsigned index = find_array(offset, touch.bytes);
  if (index == MAX_SHARED_ARRAYS) {
    report_last(found(BOUNDS, touch, {SHARED, index, static_cast<int64_t>(offset)}));
  }
  const auto into = static_cast<int64_t>(offset - state.shared_arrays[index].offset);
  const Where where = {SHARED, index, into};
  touch_shared(touch, where, offset, actor);
}

uint64_t divide(uint64_t offset, uint64_t stride) {
  if ((offset | stride) >> 32 != 0) return offset / stride;
  return static_cast<uint32_t>(offset) / static_cast<uint32_t>(stride);  // takes half the time
}

// The bytes from a tensor's first to its last, of its dimensions from `first` on.
uint64_t span_of(const Tensor &tensor, unsigned first) {
  const unsigned last = tensor.rank - 1;
  uint64_t bytes = tensor.shape[last] * tensor.element;
  for (unsigned i = first; i < last; ++i) bytes += (tensor.shape[i] - 1) * tensor.strides[i];
  return bytes;
}

// The element as `find_element` counts, in the dimensions from `first` on.  The greatest index is
// right if a stride spans all that the shorter ones reach; the loop is for interleaved tensors.
int64_t find_from(const Tensor &tensor, unsigned first, uint64_t offset, size_t bytes) {
  const unsigned last = tensor.rank - 1;
  if (first == last) {
    if (offset + bytes > tensor.shape[last] * tensor.element) return -1;
    return static_cast<int64_t>(offset / tensor.element);
  }
  uint64_t inner = 1;
  for (unsigned i = first + 1; i <= last; ++i) inner *= tensor.shape[i];
  const uint64_t stride = tensor.strides[first];
  uint64_t index = stride != 0 ? divide(offset, stride) : 0;
  if (index >= tensor.shape[first]) index = tensor.shape[first] - 1;
  for (;; --index) {
    const uint64_t rest = offset - index * stride;
    if (rest + bytes > span_of(tensor, first + 1)) return -1;
    const int64_t element = find_from(tensor, first + 1, rest, bytes);
    if (element >= 0) return static_cast<int64_t>(index * inner) + element;
    if (index == 0) return -1;
  }
}

// The row-major index of the element at which the access begins; -1 unless the access is wholly
// within one row of the tensor.
int64_t find_element(const Tensor &tensor, uint64_t offset, size_t bytes) {
  for (unsigned i = 0; i < tensor.rank; ++i) {
    if (tensor.shape[i] == 0) return -1;
  }
  return find_from(tensor, 0, offset, bytes);
}

const unsigned char *data_of(const Tensor &tensor) {
  return state.buffers[tensor.buffer].data + tensor.offset;
}

// Whatever the preceding kernel reads or writes may be this tensor.
void check_waited(const Touch &touch, const Where &where) {
  constexpr uint32_t EARLY_LAUNCH = 1u << cudaLaunchAttributeProgrammaticStreamSerialization;
  if ((state.header.attributes & EARLY_LAUNCH) == 0) return;
  if (state.waited[state.thread] == state.block_interval) return;
  Finding early = found(TOO_EARLY, touch, where);
  snprintf(early.detail, sizeof early.detail, "the preceding kernel may still run");
  report(early);
}

bool check_tensor(unsigned index, const Touch &touch) {
  const Tensor &tensor = state.tensors[index];
  const unsigned char *data = data_of(tensor);
  if (touch.address < data) return false;
  const auto offset = static_cast<uint64_t>(touch.address - data);
  const int64_t element = find_element(tensor, offset, touch.bytes);
  if (element < 0) return false;
  const bool writable = state.buffers[tensor.buffer].head.writable;
  const Where where = {TENSOR, index, static_cast<int64_t>(offset)};
  check_waited(touch, where);
  if (!writable && !touch.write) return true;
  if (!writable) report_last(found(BOUNDS, touch, where));
  touch_tensor(touch, where, static_cast<size_t>(element));
  return true;
}

// Reports the tensor whose memory is nearest to the address as the one that was meant.
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

// Whether the address is in the program's own data: arguments, threadIdx, constants.
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
    const auto into = static_cast<int64_t>(offset - state.shared_arrays[index].offset);
    report_last(found(MISALIGNED, touch, {SHARED, index, into}));
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

// The runner's own accesses, and those of a thread's variables: most of all that there are.
inline bool is_unchecked(const unsigned char *address) {
  return !state.running || static_cast<size_t>(address - state.stack) < STACK_BYTES;
}

[[gnu::noinline]] void check_all(const Touch &touch, bool aligned) {
  const auto address_bits = reinterpret_cast<uintptr_t>(touch.address);
  if (aligned && address_bits % touch.bytes != 0) report_misaligned(touch);
  const auto offset = static_cast<size_t>(touch.address - state.shared);
  if (offset < state.shared_bytes) {
    check_shared(touch, offset);
  } else {
    check_other(touch);
  }
}

inline void check(const Touch &touch, bool aligned) {
  if (!is_unchecked(touch.address)) check_all(touch, aligned);
}

size_t shared_offset(const Issue &issue) {
  return static_cast<size_t>(reinterpret_cast<unsigned char *>(issue.target) - state.shared);
}

}  // namespace

void touch_atomic(const void *word, uint32_t bytes, uint32_t pc) {
  check({static_cast<const unsigned char *>(word), bytes, true, pc, true}, true);
}

void check_access(const Touch &touch, unsigned actor) {
  const auto offset = static_cast<size_t>(touch.address - state.shared);
  if (offset < state.shared_bytes) {
    check_shared(touch, offset, actor);
  } else {
    check_other(touch);
  }
}

// Both addresses must be multiples of the size, even if nothing is read.
void check_issue(const Issue &issue) {
  const auto *source = reinterpret_cast<const unsigned char *>(issue.source);
  const auto *target = reinterpret_cast<const unsigned char *>(issue.target);
  if (reinterpret_cast<uintptr_t>(source) % issue.bytes != 0) {
    report_misaligned({source, issue.bytes, false, issue.pc});
  }
  if (issue.valid != 0) check({source, issue.valid, false, issue.pc}, false);
  check({target, issue.bytes, true, issue.pc}, true);
  begin_copy(shared_offset(issue), issue.bytes);
}

void check_landing(const Issue &issue) { end_copy(shared_offset(issue), issue.bytes); }

void check_end(const Issue &first) {
  const size_t offset = shared_offset(first);
  const unsigned index = find_array(offset, first.bytes);
  const auto into = static_cast<int64_t>(offset - state.shared_arrays[index].offset);
  const auto *target = reinterpret_cast<const unsigned char *>(first.target);
  report(found(NOT_AWAITED, {target, first.bytes, true, first.pc}, {SHARED, index, into}));
}

}  // namespace gg

#define GG_PC static_cast<uint32_t>(reinterpret_cast<uintptr_t>(__builtin_return_address(0)))
#define GG_CALLBACK(name, bytes, write, aligned)                             \
  void name(const void *address) {                                           \
    const auto *first = static_cast<const unsigned char *>(address);         \
    if (gg::is_unchecked(first)) return;                                     \
    gg::check_all({first, bytes, write, GG_PC}, aligned);                    \
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

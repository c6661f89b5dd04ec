// The parts of the runner: the program that a kernel is linked with, to execute it on request.
//
//   runner.cpp   launches: blocks one after another, threads in an order, barriers
//   fibers.cpp   one fiber for each thread of a block
//   copies.cpp   asynchronous copies
//   warp.cpp     where the lanes of a warp meet
//   tensor.cpp   what a warp's tensor core multiplies
//   blocks.cpp   what several blocks count and add to
//   launcher.cpp what the text's launcher asks of CUDA's runtime
//   memory.cpp   buffers between guard pages, shared memory
//   request.cpp  what is asked on standard input and answered on standard output
//   faults.cpp   what is found wrong, and what ends a run
//
// The kernel's own object meets these through host.h alone.  A checked build compiles it with
// instrumentation, whose callbacks are more files here; they read `state` and report findings.
//
//   accesses.cpp    each load and store: bounds and alignment
//   shadow.cpp      and who touched the words before: races, what was never written
//   order.cpp       what one block did before another, by the counters of both
//   arithmetic.cpp  each index of an array and each operation on integers
#pragma once

#include <cstddef>
#include <cstdint>

#define GG_RUNNER
#include "host.h"

extern GgIndex threadIdx, blockIdx, blockDim, gridDim;

namespace gg {

// The layouts from here to Finding are known to gemmgen/sim/process.py and findings.py.
struct Header {
  uint32_t magic;
  uint32_t order;  // 0 ascending, 1 descending, 2 shuffled anew in each barrier interval
  uint64_t seed;
  uint32_t grid, block_x, block_y;
  uint32_t milliseconds;
  uint32_t buffers, arguments;
  uint32_t tensors, shared_arrays;  // none where the kernel is not a checked build
  uint32_t landing;                 // of asynchronous copies: 0 late, 1 early
  uint32_t word;                    // bytes of the smallest element, at most 4
  uint32_t by_launcher;             // 1: the text's launcher, if it has one, begins the launch
  uint32_t unused;
};

struct BufferHead {
  uint64_t bytes;
  uint32_t residue;  // the address modulo 256
  uint32_t writable;
  uint32_t pieces;
  uint32_t unused;
  char name[64];
};

// Bytes of a buffer that are sent, and sent back; what lies between them is zero.
struct Piece {
  uint64_t offset, bytes;
};

struct ArgumentHead {
  uint32_t kind;  // 0 integer, 1 real (32 bits), 2 pointer, 3 real (64 bits)
  uint32_t buffer;
  uint64_t value;  // the bits of a number, or a byte offset into the buffer
};

constexpr unsigned MAX_RANK = 6;

// What a kernel may touch of a buffer: `shape` elements whose neighbours along each dimension are
// `strides` bytes apart, the longest first; the last dimension is contiguous.
struct Tensor {
  uint32_t buffer, rank;
  uint32_t readable;  // 0: what it holds before the launch means nothing
  uint32_t shared;    // 1: several blocks may write an element, one after another
  uint32_t element;   // bytes
  uint32_t unused;
  uint64_t offset;    // bytes into the buffer
  uint64_t shape[MAX_RANK], strides[MAX_RANK];
};

struct SharedArray {
  uint64_t offset, bytes;  // in the segment of shared memory
};

enum Kind : uint32_t {
  RACE,
  TWO_OWNERS,
  BOUNDS,
  UNWRITTEN,
  MISALIGNED,
  DIVERGENT,
  ARITHMETIC,
  UNDER_WAY,  // touched between the issue of an asynchronous copy and the wait for it
  NOT_AWAITED,
  DIVERGENT_WARP
};
enum Target : uint32_t { NOTHING, TENSOR, SHARED };

struct Access {
  uint64_t pc;    // the address behind the call that reports the access
  uint32_t line;  // of the text; where it is 0, pc tells it
  uint32_t block, thread;
  uint32_t write;
};

struct Finding {
  Kind kind;
  Target target;
  uint32_t index;      // of the tensor or the shared array
  uint32_t bytes;      // accessed
  int64_t offset;      // bytes from the target's first
  Access access;       // what is wrong
  Access other;        // and what it conflicts with, in a race, of two owners, at a barrier
  char detail[96];
};

constexpr uint32_t MAGIC = 0x67676d32, CALLS_MAGIC = 0x67676d63;
constexpr unsigned MAX_BUFFERS = 64, MAX_ARGUMENTS = 256, MAX_THREADS = 1024;
constexpr unsigned WARP = 32;
constexpr unsigned MAX_PIECES = 4096, MAX_SHARED_ARRAYS = 64, MAX_FINDINGS = 16;

// [mapping, data) and [data + bytes, mapping_end) are poisoned; at either end are GUARD_BYTES that
// cannot be accessed.
struct Buffer {
  BufferHead head;
  unsigned char *mapping, *mapping_end;
  unsigned char *data;
};

struct State {
  Header header;
  Buffer buffers[MAX_BUFFERS];
  const Piece *pieces[MAX_BUFFERS];
  GgArgument arguments[MAX_ARGUMENTS];
  Tensor tensors[MAX_ARGUMENTS];
  SharedArray shared_arrays[MAX_SHARED_ARRAYS];
  Finding findings[MAX_FINDINGS];
  unsigned found;
  unsigned threads;       // of a block
  unsigned thread;        // that runs now: x + y * block_x
  int line[MAX_THREADS];  // of the barrier at which a thread waits; 0 when it left the kernel
  int place[MAX_THREADS];       // the line of the function that it called last, whose lanes meet
  int warp_line[MAX_THREADS];   // at which a thread waits for its warp, or 0
  bool released[MAX_THREADS];   // it waited, and its warp has met
  uint16_t epoch[MAX_THREADS];  // barriers of its warp that a thread has passed in this interval
  bool running;           // the kernel's code, not the runner's
  unsigned char *stack;   // of that thread
  unsigned char *shared;  // the segment of shared memory
  size_t shared_bytes;
  // Barrier intervals are numbered from 1 while the process lives; these are the running one, and
  // the first of the running block and of the launch.
  uint32_t interval, block_interval, launch_interval;
};
extern State state;

// request.cpp
enum Request { END, LAUNCH, CALLS };  // of standard input; a launch; calls of the launcher alone
Request read_request();
bool read_bytes(void *data, size_t bytes);
void write_bytes(const void *data, size_t bytes);
void write_head(uint32_t status, uint64_t bytes);
void write_answer();
void write_findings(bool ends);
[[noreturn]] void write_fault(const char *message, size_t length);

// memory.cpp
constexpr size_t GUARD_BYTES = size_t{16} << 20;
void map_buffer(Buffer &buffer);
void protect_buffers();
void check_bands();
void unmap_buffers();
void find_shared();
void poison_shared();

// copies.cpp
void end_copies();  // a thread leaves the kernel

// An asynchronous copy: its first `valid` bytes are the source's, the others zeros.
struct Issue {
  void *target;
  const void *source;
  uint32_t bytes, valid;
  uint32_t pc;
};

// accesses.cpp, in a checked build alone.
[[gnu::weak]] void check_issue(const Issue &issue);
[[gnu::weak]] void check_landing(const Issue &issue);
[[gnu::weak]] void check_end(const Issue &first);  // of the copies that nobody waited for

// fibers.cpp
constexpr size_t STACK_BYTES = 64 * 1024;
unsigned char *stack_of(unsigned index);
void reserve_fibers(unsigned count);
void start_fiber(unsigned index, void (*entry)());
void resume_fiber(unsigned index);  // until the fiber suspends, or its entry returns
void suspend_fiber();
bool is_fiber_guard(const unsigned char *address);

// warp.cpp
bool release_warps();  // those that have met; no thread runs on by itself when it is called

// accesses.cpp and order.cpp, which are not there where the kernel is no checked build
void touch_atomic(const void *word, uint32_t bytes, uint32_t pc) __attribute__((weak));
void note_count(const unsigned *counter) __attribute__((weak));

// launcher.cpp
void launch_by_launcher();  // takes the arguments of the request's launch from the launcher's
bool answer_calls(uint32_t count);

// faults.cpp
void install_fault_handlers();
void report(const Finding &finding);                   // unless it is known by its two places
[[noreturn]] void report_last(const Finding &finding);  // the run cannot go on
[[noreturn]] void fault(const char *format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace gg

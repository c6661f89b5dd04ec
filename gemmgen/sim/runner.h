// The runner: the program that a kernel is linked with, which executes it on request.
//
//   runner.cpp          launches: blocks, or clusters of them, one after another
//   clusters.cpp        blocks of a cluster, which run together, and their shared memory
//   cluster_barrier.cpp the barrier of a cluster's threads
//   scheduler.cpp       a block's or a cluster's threads: who can go on, in an order; deadlocks
//   named_barriers.cpp  barriers of the block and of some of its warps
//   clocks.cpp          happens-before of threads that do not all wait for one another
//   fibers.cpp          one fiber for each thread
//   async_copies.cpp    asynchronous copies
//   mbarriers.cpp       barriers in shared memory
//   box_copies.cpp      copies of boxes, by TMA
//   register_pool.cpp   registers that warpgroups give one another
//   warp.cpp            exchanges and barriers of a warp's lanes
//   wmma.cpp            products of a warp's fragments (wmma.mma.sync)
//   mma.cpp             the same of fragments whose elements lanes know (mma.sync)
//   fused_sum.h         products added as tensor cores do
//   wgmma.cpp           a warpgroup's multiplications (wgmma.mma_async)
//   blocks.cpp          atomics of global memory
//   launcher.cpp        the CUDA runtime that the text's launcher calls
//   pre_passes.cpp      kernels that it launches before, if their threads need one another
//   tensor_map.cpp      the driver's function that encodes tensor maps
//   guarded_memory.cpp  buffers between guard pages, shared memory
//   launch_request.cpp  requests on standard input, answers on standard output
//   faults.cpp          findings, signals and other ends of a run
//
// The kernel's own object uses these through host.h alone.  A checked build compiles it with
// instrumentation, whose callbacks read `state` and report findings:
//
//   access_checks.cpp   each load and store: bounds and alignment
//   shadow.cpp          earlier accesses of the same words: races, unwritten memory
//   reads.cpp           all threads' latest reads of shared memory, where clocks order threads
//   order.cpp           happens-before between blocks, from their counters
//   integer_checks.cpp  each index of an array and each operation on integers
#pragma once

#include <cstddef>
#include <cstdint>

#define GG_RUNNER
#include "host.h"

extern GgIndex threadIdx, blockIdx, blockDim, gridDim;

namespace gg {

// The layouts from here to Finding are repeated in gemmgen/sim/process.py and diagnosis.py.
struct Header {
  uint32_t magic;
  uint32_t order;
  uint64_t seed;
  uint32_t grid, block_x, block_y;
  uint32_t milliseconds;
  uint32_t buffers, arguments;
  uint32_t tensors, shared_arrays;  // 0 unless the kernel is a checked build
  uint32_t landing;                 // when asynchronous copies complete
  uint32_t word;                    // bytes of the smallest element, at most 4
  uint32_t by_launcher;             // 1: the text's launcher, if it has one, begins the launch
  uint32_t clocks;       // 1: threads synchronize otherwise than all of a block, or of a warp
  uint32_t multiprocessors;         // of the GPU that the launcher finds, and clusters at a time
  uint32_t attributes;  // of the launch, their numbers as bits
  uint32_t finite;    // 1: no element of a tensor is an infinity or a NaN
  uint32_t unused;
};

// Of the blocks (but for the last two) and of a block's threads in each round of the scheduler.
enum Order : uint32_t {
  ASCENDING,
  DESCENDING,
  SHUFFLED,      // again in each round
  BY_PRIORITY,   // of the warps that can go on always the first, in a random order
  ISSUERS_LAST,  // the same, in an order in which warps that have issued copies come last
};

enum Landing : uint32_t { LATE, EARLY, RANDOM };

struct BufferHead {
  uint64_t bytes;
  uint32_t residue;  // the address modulo 256
  uint32_t writable;
  uint32_t pieces;
  uint32_t unused;
  char name[64];
};

// Bytes of a buffer that are sent, and sent back; the bytes between pieces are zero.
struct Piece {
  uint64_t offset, bytes;
};

struct ArgumentHead {
  uint32_t kind;  // 0 integer, 1 real (32 bits), 2 pointer, 3 real (64 bits)
  uint32_t buffer;
  uint64_t value;  // the bits of a number, or a byte offset into the buffer
};

constexpr unsigned MAX_RANK = 6;

// What a kernel may access of a buffer: a tensor of `shape` elements with `strides` in bytes, the
// longest first; the last dimension is contiguous.
struct Tensor {
  uint32_t buffer, rank;
  uint32_t readable;  // 0: its elements are undefined before the launch
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
  UNDER_WAY,  // accessed between the issue of an asynchronous copy and the wait for it
  NOT_AWAITED,
  DIVERGENT_WARP,
  DEADLOCK,
  WRONG_BARRIER,  // its number, the threads that it is said to have, or its use at that time
  WRONG_COPY,     // a copy of a box that TMA does not do
  WRONG_REGISTERS,
  UNFENCED,       // read by the async proxy, which may not see the write yet
  ENDED,          // another block reaches into the shared memory of one that may have ended
  TOO_EARLY,      // global memory is accessed while the preceding kernel may still run
  WRONG_MULTIPLICATION  // by a warpgroup: its descriptors, its accumulators, or who takes part
};
// SEGMENT: `offset` counts from the beginning of shared memory.
enum Target : uint32_t { NOTHING, TENSOR, SHARED, SEGMENT };

struct Access {
  uint64_t pc;    // the return address of the call that reports the access
  uint32_t line;  // of the text; if 0, it is found from pc
  uint32_t block, thread;
  uint32_t write;  // 1: it writes; and BESIDE_THREAD or BY_TENSOR_CORE
};
constexpr uint32_t BESIDE_THREAD = 2;  // TMA does it, which the thread has asked for it
constexpr uint32_t BY_TENSOR_CORE = 4 | BESIDE_THREAD;  // or a tensor core does

struct Finding {
  Kind kind;
  Target target;
  uint32_t index;      // of the tensor or the shared array
  uint32_t bytes;      // accessed
  int64_t offset;      // bytes from the target's first
  Access access;       // the access that is wrong
  Access other;        // the access that it conflicts with (a race, two owners, a barrier)
  char detail[480];
};

constexpr uint32_t MAGIC = 0x67676d32, CALLS_MAGIC = 0x67676d63;
constexpr unsigned MAX_BUFFERS = 64, MAX_ARGUMENTS = 256, MAX_THREADS = 1024;
// Blocks of a cluster, and threads of all of them.
constexpr unsigned MAX_CLUSTER = 8, MAX_RESIDENT = 8192;
constexpr unsigned WARP = 32, MAX_WARPS = MAX_RESIDENT / WARP;
// Work beside the threads of each block (clocks.h): loads counted by barriers, stores by threads,
// multiplications by warpgroups.
constexpr unsigned OF_BARRIERS = 24, OF_STORERS = 8, OF_WARPGROUPS = 8;
constexpr unsigned BESIDE = OF_BARRIERS + OF_STORERS + OF_WARPGROUPS;
constexpr unsigned MAX_ACTORS = MAX_RESIDENT + MAX_CLUSTER * BESIDE;
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
  unsigned cluster;       // blocks that run together: those of a cluster, else 1
  unsigned residents;     // threads of all of them
  unsigned first_block;   // of the cluster that runs
  unsigned rank;          // in its cluster, of the block whose thread runs
  unsigned thread;        // the running one: x + y * block_x + rank * threads
  int call_line[MAX_RESIDENT];  // of its latest call of a warp-collective function
  uint32_t time[MAX_ACTORS];    // synchronizations of a thread, or of work beside the threads
  uint16_t starter[MAX_CLUSTER * BESIDE];  // the thread that has started it
  bool running;           // the kernel's code, not the runner's
  unsigned char *stack;   // of that thread
  unsigned char *shared;  // the segment of shared memory
  size_t shared_bytes;
  // Barrier intervals are numbered from 1 for the life of the process: the current one, and the
  // first of the running block and of the launch.  A cluster has one, as its blocks do not meet at
  // the barriers of each.
  uint32_t interval, block_interval, launch_interval;
  uint32_t waited[MAX_RESIDENT];  // the block_interval in which a thread has waited for a kernel
};
extern State state;

inline uint32_t block_of(unsigned thread) {
  return state.cluster > 1 ? state.first_block + thread / state.threads : blockIdx.x;
}

inline Access access_at(unsigned thread, uint64_t pc, uint32_t line, uint32_t write) {
  return {pc, line, block_of(thread), state.cluster > 1 ? thread % state.threads : thread, write};
}

// runner.cpp
uint64_t next_random();

// launch_request.cpp
enum Request { END, LAUNCH, CALLS };  // of standard input; a launch; calls of the launcher alone
Request read_request();
bool read_bytes(void *data, size_t bytes);
void write_bytes(const void *data, size_t bytes);
void write_head(uint32_t status, uint64_t bytes);
void write_answer();
void write_findings(bool ends);
[[noreturn]] void write_fault(const char *message, size_t length);

// guarded_memory.cpp
constexpr size_t GUARD_BYTES = size_t{16} << 20;
void map_buffer(Buffer &buffer);
void protect_buffers();
void check_bands();
void unmap_buffers();
void find_shared();
void poison_shared();
void *map_memory(size_t bytes, const char *what);  // zeros

// async_copies.cpp
void end_copies();  // called when a thread leaves the kernel

// mbarriers.cpp, box_loads.cpp, box_stores.cpp, register_pool.cpp
void end_mbarriers();  // called when all threads of a block have left the kernel
void end_loads(unsigned rank);  // the same
void end_registers();  // the same
void end_stores();     // called when a thread leaves the kernel
// The same; wgmma.cpp, which only programs with wgmma have.
void end_multiplications() __attribute__((weak));

// An asynchronous copy: its first `valid` bytes are the source's, the others are zeros.
struct Issue {
  void *target;
  const void *source;
  uint32_t bytes, valid;
  uint32_t pc;
};

// access_checks.cpp; null unless this is a checked build
[[gnu::weak]] void check_issue(const Issue &issue);
[[gnu::weak]] void check_landing(const Issue &issue);
[[gnu::weak]] void check_end(const Issue &first);  // the first copy that was never waited for

// fibers.cpp
constexpr size_t STACK_BYTES = 64 * 1024;
unsigned char *stack_of(unsigned index);
void reserve_fibers(unsigned count);
void start_fiber(unsigned index, void (*entry)());
void resume_fiber(unsigned index);  // until the fiber suspends, or its entry returns
void suspend_fiber();
bool is_fiber_guard(const unsigned char *address);

// access_checks.cpp and order.cpp; null unless this is a checked build
void touch_atomic(const void *word, uint32_t bytes, uint32_t pc) __attribute__((weak));
void note_count(const unsigned *counter) __attribute__((weak));

// launcher.cpp
void launch_by_launcher();  // takes the arguments of the request's launch from the launcher's
bool answer_calls(uint32_t count);
int map_error(uint32_t encoding);  // what cuTensorMapEncodeTiled is to return for one of a call's encodings, or 0

// faults.cpp
void install_fault_handlers();
void report(const Finding &finding);  // unless one at the same two accesses is known
[[noreturn]] void report_last(const Finding &finding);  // and ends the run
[[noreturn]] void fault(const char *format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace gg

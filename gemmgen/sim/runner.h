// The parts of the runner: the program that a kernel is linked with, to execute it on request.
//
//   runner.cpp  launches: blocks one after another, threads in an order, barriers
//   fibers.cpp  one fiber for each thread of a block
//   memory.cpp  buffers between guard pages, shared memory
//   request.cpp what is asked on standard input and answered on standard output
//   faults.cpp  what ends a run: a report, then exit
//
// The kernel's own object meets these through host.h alone, so it may be compiled with
// instrumentation whose callbacks are one more file here; they read `state`.
#pragma once

#include <cstddef>
#include <cstdint>

#define GG_RUNNER
#include "host.h"

extern GgIndex threadIdx, blockIdx, blockDim, gridDim;

namespace gg {

// The layouts of Header, BufferHead and ArgumentHead are known to gemmgen/sim/process.py.
struct Header {
  uint32_t magic;
  uint32_t order;  // 0 ascending, 1 descending, 2 shuffled anew in each barrier interval
  uint64_t seed;
  uint32_t grid, block_x, block_y;
  uint32_t seconds;
  uint32_t buffers, arguments;
};

struct BufferHead {
  uint64_t bytes;
  uint32_t residue;  // the address modulo 256
  uint32_t writable;
  char name[64];
};

struct ArgumentHead {
  uint32_t kind;  // 0 integer, 1 real, 2 pointer
  uint32_t buffer;
  uint64_t value;  // the bits of a number, or a byte offset into the buffer
};

constexpr uint32_t MAGIC = 0x67676d31;
constexpr unsigned MAX_BUFFERS = 64, MAX_ARGUMENTS = 256, MAX_THREADS = 1024;

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
  GgArgument arguments[MAX_ARGUMENTS];
  unsigned threads;       // of a block
  unsigned thread;        // that runs now: x + y * block_x
  int line[MAX_THREADS];  // of the barrier at which a thread waits; 0 when it left the kernel
  bool running;           // the kernel's code, not the runner's
};
extern State state;

// request.cpp
bool read_request();
void write_answer();
[[noreturn]] void write_fault(const char *message, size_t length);

// memory.cpp
constexpr size_t GUARD_BYTES = size_t{16} << 20;
void map_buffer(Buffer &buffer);
void protect_buffers();
void check_bands();
void unmap_buffers();
void poison_shared();

// fibers.cpp
void reserve_fibers(unsigned count);
void start_fiber(unsigned index, void (*entry)());
void resume_fiber(unsigned index);  // until the fiber suspends, or its entry returns
void suspend_fiber();
bool is_fiber_guard(const unsigned char *address);

// faults.cpp
void install_fault_handlers();
[[noreturn]] void fault(const char *format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace gg

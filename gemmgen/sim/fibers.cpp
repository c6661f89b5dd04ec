#include "runner.h"

#include <sys/mman.h>
#include <unistd.h>

#if !defined(__x86_64__) && !defined(GG_UCONTEXT)
#define GG_UCONTEXT
#endif

#ifdef GG_UCONTEXT
#include <ucontext.h>
#endif

namespace gg {
namespace {

size_t page, stride;  // a fiber's guard page and, above it, its stack
unsigned char *stacks;
unsigned reserved;
void (*entry)();

#ifdef GG_UCONTEXT

ucontext_t scheduler, contexts[MAX_RESIDENT];
unsigned current;

void switch_to_scheduler() { swapcontext(&contexts[current], &scheduler); }

#else

void *scheduler, *contexts[MAX_RESIDENT];  // stack pointers
unsigned current;

// Saves the registers that a callee preserves and the stack pointer, and loads another set.
extern "C" void gg_switch(void **saved, void *loaded);
asm(R"(
.text
.type gg_switch, @function
gg_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size gg_switch, . - gg_switch
)");

void switch_to_scheduler() { gg_switch(&contexts[current], scheduler); }

#endif

void run_entry() {
  entry();
  switch_to_scheduler();
  __builtin_trap();  // a fiber that has ended is never resumed
}

}  // namespace

unsigned char *stack_of(unsigned index) { return stacks + index * stride + page; }

void reserve_fibers(unsigned count) {
  if (count <= reserved) return;
  page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  stride = page + STACK_BYTES;
  if (stacks != nullptr) munmap(stacks, reserved * stride);
  void *mapping = mmap(nullptr, count * stride, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) fault("no memory for the stacks of %u threads", count);
  stacks = static_cast<unsigned char *>(mapping);
  reserved = count;
  for (unsigned i = 0; i < count; ++i) mprotect(stacks + i * stride, page, PROT_NONE);
}

bool is_fiber_guard(const unsigned char *address) {
  if (stacks == nullptr || address < stacks || address >= stacks + reserved * stride) return false;
  return static_cast<size_t>(address - stacks) % stride < page;
}

#ifdef GG_UCONTEXT

void start_fiber(unsigned index, void (*function)()) {
  entry = function;
  getcontext(&contexts[index]);
  contexts[index].uc_stack.ss_sp = stack_of(index);
  contexts[index].uc_stack.ss_size = STACK_BYTES;
  contexts[index].uc_link = nullptr;
  makecontext(&contexts[index], run_entry, 0);
}

void resume_fiber(unsigned index) {
  current = index;
  swapcontext(&scheduler, &contexts[index]);
}

#else

void start_fiber(unsigned index, void (*function)()) {
  entry = function;
  // Six registers, the address that gg_switch returns to, and a word for the alignment of a call.
  void **top = reinterpret_cast<void **>(stack_of(index) + STACK_BYTES) - 8;
  for (int i = 0; i < 8; ++i) top[i] = nullptr;
  top[6] = reinterpret_cast<void *>(run_entry);
  contexts[index] = top;
}

void resume_fiber(unsigned index) {
  current = index;
  gg_switch(&scheduler, contexts[index]);
}

#endif

void suspend_fiber() { switch_to_scheduler(); }

}  // namespace gg

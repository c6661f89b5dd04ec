#include "runner.h"

#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <ucontext.h>
#include <unistd.h>

namespace gg {
namespace {

alignas(16) unsigned char signal_stack[64 * 1024];

const char *access_name(const void *context) {
#ifdef __x86_64__
  const auto *machine = static_cast<const ucontext_t *>(context);
  return machine->uc_mcontext.gregs[REG_ERR] & 2 ? "writes" : "reads";
#else
  (void)context;
  return "touches";
#endif
}

// Describes `address` relative to the buffer whose mapping or guard pages hold it.
void describe_address(const unsigned char *address, const char *access, char *text, size_t size) {
  for (unsigned i = 0; i < state.header.buffers; ++i) {
    const Buffer &buffer = state.buffers[i];
    const unsigned char *end = buffer.data + buffer.head.bytes;
    if (address < buffer.mapping - GUARD_BYTES) continue;
    if (address >= buffer.mapping_end + GUARD_BYTES) continue;
    if (address < buffer.data) {
      snprintf(text, size, "%s %td bytes before the memory of %s", access, buffer.data - address,
               buffer.head.name);
    } else if (address >= end) {
      snprintf(text, size, "%s %td bytes past the end of the memory of %s", access, address - end,
               buffer.head.name);
    } else {
      snprintf(text, size, "%s byte %td of the memory of %s, which it may only read", access,
               address - buffer.data, buffer.head.name);
    }
    return;
  }
  snprintf(text, size, "%s address %p, which belongs to no argument", access,
           static_cast<const void *>(address));
}

void on_signal(int number, siginfo_t *info, void *context) {
  char what[256];
  const auto *address = static_cast<const unsigned char *>(info->si_addr);
  if (number != SIGSEGV && number != SIGBUS) {
    snprintf(what, sizeof what, "stops with signal %d", number);
  } else if (is_fiber_guard(address)) {
    snprintf(what, sizeof what, "overflows its stack");
  } else if (info->si_code == SI_KERNEL) {
    snprintf(what, sizeof what, "makes a misaligned wide access, or uses a wild address");
  } else {
    describe_address(address, access_name(context), what, sizeof what);
  }
  if (!state.running) fault("the runner itself %s", what);
  fault("thread (%u, %u) of block %u %s", threadIdx.x, threadIdx.y, blockIdx.x, what);
}

}  // namespace

void install_fault_handlers() {
  stack_t stack = {};
  stack.ss_sp = signal_stack;
  stack.ss_size = sizeof signal_stack;
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND;
  constexpr int SIGNALS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
  for (const int number : SIGNALS) sigaction(number, &action, nullptr);
}

void report(const Finding &finding) {
  for (unsigned i = 0; i < state.found; ++i) {
    const Finding &known = state.findings[i];
    if (known.kind == finding.kind && known.access.pc == finding.access.pc &&
        known.access.line == finding.access.line && known.other.pc == finding.other.pc) {
      return;
    }
  }
  if (state.found < MAX_FINDINGS) state.findings[state.found++] = finding;
}

void report_last(const Finding &finding) {
  if (state.found == MAX_FINDINGS) --state.found;
  report(finding);
  write_findings(true);
  _exit(0);
}

void fault(const char *format, ...) {
  char message[512];
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  const size_t written = static_cast<size_t>(length);
  write_fault(message, written < sizeof message ? written : sizeof message - 1);
}

}  // namespace gg

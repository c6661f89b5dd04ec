#include "runner.h"

#include <cstring>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

namespace gg {
namespace {

// A byte of a word that is a NaN and contains its own address, so that poison copied from elsewhere
// is detected.
unsigned char poison_byte(const unsigned char *address) {
  const auto bits = reinterpret_cast<uintptr_t>(address);
  const auto word = static_cast<uint32_t>(0x7fd00000 | (bits >> 2 & 0xfffff));
  return static_cast<unsigned char>(word >> (bits & 3) * 8);
}

void poison(unsigned char *begin, const unsigned char *end) {
  for (unsigned char *byte = begin; byte < end; ++byte) *byte = poison_byte(byte);
}

// The first object that dl_iterate_phdr visits is the program itself.  Its thread-local segment is
// the kernel's shared arrays and nothing else, as the runner has no thread-local variable.
int find_segment(dl_phdr_info *info, size_t, void *) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_TLS) continue;
    state.shared = static_cast<unsigned char *>(info->dlpi_tls_data);
    state.shared_bytes = info->dlpi_phdr[i].p_memsz;
  }
  return 1;
}

void check_band(const Buffer &buffer, const unsigned char *begin, const unsigned char *end) {
  for (const unsigned char *byte = begin; byte < end; ++byte) {
    if (*byte == poison_byte(byte)) continue;
    if (byte < buffer.data) {
      fault("the kernel wrote %td bytes before the memory of %s", buffer.data - byte,
            buffer.head.name);
    }
    fault("the kernel wrote %td bytes past the end of the memory of %s",
          byte - (buffer.data + buffer.head.bytes), buffer.head.name);
  }
}

}  // namespace

void map_buffer(Buffer &buffer) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t inner = (buffer.head.bytes + 256 + page - 1) / page * page;
  void *mapping = mmap(nullptr, inner + 2 * GUARD_BYTES, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    fault("no memory for the %llu bytes of %s", static_cast<unsigned long long>(buffer.head.bytes),
          buffer.head.name);
  }
  buffer.mapping = static_cast<unsigned char *>(mapping) + GUARD_BYTES;
  buffer.mapping_end = buffer.mapping + inner;
  mprotect(buffer.mapping, inner, PROT_READ | PROT_WRITE);
  // As close to the upper guard as the residue allows.
  unsigned char *last = buffer.mapping_end - buffer.head.bytes;
  buffer.data = last - ((reinterpret_cast<uintptr_t>(last) - buffer.head.residue) & 255);
  poison(buffer.mapping, buffer.data);
  poison(buffer.data + buffer.head.bytes, buffer.mapping_end);
}

void protect_buffers() {
  for (unsigned i = 0; i < state.header.buffers; ++i) {
    const Buffer &buffer = state.buffers[i];
    if (buffer.head.writable) continue;
    mprotect(buffer.mapping, static_cast<size_t>(buffer.mapping_end - buffer.mapping), PROT_READ);
  }
}

void check_bands() {
  for (unsigned i = 0; i < state.header.buffers; ++i) {
    const Buffer &buffer = state.buffers[i];
    if (!buffer.head.writable) continue;
    check_band(buffer, buffer.mapping, buffer.data);
    check_band(buffer, buffer.data + buffer.head.bytes, buffer.mapping_end);
  }
}

void unmap_buffers() {
  for (unsigned i = 0; i < state.header.buffers; ++i) {
    const Buffer &buffer = state.buffers[i];
    const auto inner = static_cast<size_t>(buffer.mapping_end - buffer.mapping);
    munmap(buffer.mapping - GUARD_BYTES, inner + 2 * GUARD_BYTES);
  }
}

void *map_memory(size_t bytes, const char *what) {
  void *mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) fault("no memory for the %zu bytes of %s", bytes, what);
  return mapping;
}

void find_shared() { dl_iterate_phdr(find_segment, nullptr); }

void poison_shared() {
  if (state.shared_bytes != 0) memset(state.shared, 0xff, state.shared_bytes);  // floats are NaN
}

}  // namespace gg

// A distance that does not fit 32 signed bits becomes 1 << 31, which is outside every array.
extern "C" unsigned gg_shared_offset(const void *pointer) {
  const auto distance = static_cast<const unsigned char *>(pointer) - gg::state.shared;
  return distance == static_cast<int>(distance) ? static_cast<unsigned>(distance) : 1u << 31;
}

extern "C" void *gg_shared_pointer(unsigned offset) {
  return gg::state.shared + static_cast<int>(offset);
}

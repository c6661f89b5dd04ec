#include "runner.h"

#include <cstring>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

namespace gg {
namespace {

size_t page_bytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

struct Segment {
  void *data;
  size_t bytes;
};

// The first object that dl_iterate_phdr visits is the program itself.  Its thread-local segment holds the
// kernel's shared arrays and nothing else, as the runner has no thread-local variable.
int find_shared(dl_phdr_info *info, size_t, void *result) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_TLS) continue;
    *static_cast<Segment *>(result) = {info->dlpi_tls_data, info->dlpi_phdr[i].p_memsz};
  }
  return 1;
}

void check_band(const Buffer &buffer, const unsigned char *begin, const unsigned char *end) {
  for (const unsigned char *byte = begin; byte < end; ++byte) {
    if (*byte == POISON) continue;
    if (byte < buffer.data) {
      fault("the kernel wrote %td bytes before the memory of %s", buffer.data - byte, buffer.head.name);
    }
    fault("the kernel wrote %td bytes past the end of the memory of %s",
          byte - (buffer.data + buffer.head.bytes), buffer.head.name);
  }
}

}  // namespace

void map_buffer(Buffer &buffer) {
  const size_t page = page_bytes();
  const size_t inner = (buffer.head.bytes + 256 + page - 1) / page * page;
  void *mapping = mmap(nullptr, inner + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) {
    fault("no memory for the %llu bytes of %s", static_cast<unsigned long long>(buffer.head.bytes),
          buffer.head.name);
  }
  buffer.mapping = static_cast<unsigned char *>(mapping) + page;
  buffer.mapping_end = buffer.mapping + inner;
  mprotect(buffer.mapping, inner, PROT_READ | PROT_WRITE);
  // As close to the upper guard page as the residue allows.
  unsigned char *last = buffer.mapping_end - buffer.head.bytes;
  buffer.data = last - ((reinterpret_cast<uintptr_t>(last) - buffer.head.residue) & 255);
  unsigned char *data_end = buffer.data + buffer.head.bytes;
  memset(buffer.mapping, POISON, static_cast<size_t>(buffer.data - buffer.mapping));
  memset(data_end, POISON, static_cast<size_t>(buffer.mapping_end - data_end));
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
  const size_t page = page_bytes();
  for (unsigned i = 0; i < state.header.buffers; ++i) {
    const Buffer &buffer = state.buffers[i];
    munmap(buffer.mapping - page, static_cast<size_t>(buffer.mapping_end - buffer.mapping) + 2 * page);
  }
}

void poison_shared() {
  static Segment segment = [] {
    Segment found = {nullptr, 0};
    dl_iterate_phdr(find_shared, &found);
    return found;
  }();
  if (segment.bytes != 0) memset(segment.data, POISON, segment.bytes);
}

}  // namespace gg

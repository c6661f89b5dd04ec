#include "runner.h"

#include <cstring>
#include <sys/resource.h>
#include <unistd.h>

namespace gg {
namespace {

struct AnswerHead {
  uint32_t magic;
  // What follows: 0 the writable buffers' pieces, 2 findings, 4 records of launcher calls; the
  // process ends after 1, a message, and after 3, findings.
  uint32_t status;
  uint64_t bytes;
};

}  // namespace

bool read_bytes(void *data, size_t bytes) {
  auto *position = static_cast<unsigned char *>(data);
  while (bytes != 0) {
    const ssize_t got = read(STDIN_FILENO, position, bytes);
    if (got <= 0) return false;
    position += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

void write_bytes(const void *data, size_t bytes) {
  const auto *position = static_cast<const unsigned char *>(data);
  while (bytes != 0) {
    const ssize_t put = write(STDOUT_FILENO, position, bytes);
    if (put <= 0) _exit(1);
    position += put;
    bytes -= static_cast<size_t>(put);
  }
}

void write_head(uint32_t status, uint64_t bytes) {
  const AnswerHead head = {MAGIC, status, bytes};
  write_bytes(&head, sizeof head);
}

namespace {

GgArgument decode(const ArgumentHead &head) {
  GgArgument argument = {};
  if (head.kind == 2) {
    argument.pointer = state.buffers[head.buffer].data + head.value;
  } else {
    memcpy(&argument, &head.value, sizeof head.value);
  }
  return argument;
}

bool fits(const Header &header) {
  return header.magic == MAGIC && header.buffers <= MAX_BUFFERS &&
         header.arguments <= MAX_ARGUMENTS && header.tensors <= MAX_ARGUMENTS &&
         header.shared_arrays <= MAX_SHARED_ARRAYS && state.threads <= MAX_THREADS;
}

// Limits the process to MEMORY_LIMIT in addition to the buffers.  Their shadow is as large as the
// matrices, not as the memory that the matrices span.
void limit_memory() {
  constexpr rlim_t MEMORY_LIMIT = rlim_t{16} << 30;
  rlimit limit;
  getrlimit(RLIMIT_AS, &limit);
  rlim_t wanted = MEMORY_LIMIT;
  for (unsigned i = 0; i < state.header.buffers; ++i) wanted += state.buffers[i].head.bytes;
  limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
  setrlimit(RLIMIT_AS, &limit);
}

bool read_pieces() {
  static Piece pieces[MAX_PIECES];
  unsigned count = 0;
  for (unsigned i = 0; i < state.header.buffers; ++i) {
    state.pieces[i] = pieces + count;
    count += state.buffers[i].head.pieces;
  }
  if (count > MAX_PIECES) fault("the request is malformed");
  return read_bytes(pieces, count * sizeof(Piece));
}

bool read_buffer(unsigned index) {
  Buffer &buffer = state.buffers[index];
  map_buffer(buffer);
  for (unsigned i = 0; i < buffer.head.pieces; ++i) {
    const Piece &piece = state.pieces[index][i];
    if (!read_bytes(buffer.data + piece.offset, piece.bytes)) return false;
  }
  return true;
}

}  // namespace

namespace {

// What a cluster may have, as the models do.
void check_cluster() {
  if (state.cluster == 1) return;
  if (state.cluster > MAX_CLUSTER || state.residents > MAX_RESIDENT) {
    fault("a cluster of %u blocks of %u threads: at most %u blocks, and %u threads",
          state.cluster, state.threads, MAX_CLUSTER, MAX_RESIDENT);
  }
  if (state.threads % WARP != 0) fault("blocks of a cluster have whole warps");
  if (state.header.grid % state.cluster != 0) {
    fault("a grid of %u blocks in clusters of %u", state.header.grid, state.cluster);
  }
}

// Reads a launch after its magic number; false if it is truncated.
bool read_launch() {
  Header &header = state.header;
  state.threads = header.block_x * header.block_y;
  state.cluster = gg_cluster_blocks;
  state.residents = state.threads * state.cluster;
  if (!fits(header)) {
    header.buffers = 0;
    fault("the request is malformed");
  }
  check_cluster();
  static ArgumentHead heads[MAX_ARGUMENTS];
  for (unsigned i = 0; i < header.buffers; ++i) {
    if (!read_bytes(&state.buffers[i].head, sizeof(BufferHead))) return false;
  }
  if (!read_bytes(heads, header.arguments * sizeof *heads)) return false;
  if (!read_bytes(state.tensors, header.tensors * sizeof *state.tensors)) return false;
  if (!read_bytes(state.shared_arrays, header.shared_arrays * sizeof *state.shared_arrays)) {
    return false;
  }
  limit_memory();
  if (!read_pieces()) return false;
  for (unsigned i = 0; i < header.buffers; ++i) {
    if (!read_buffer(i)) return false;
  }
  protect_buffers();
  for (unsigned i = 0; i < header.arguments; ++i) state.arguments[i] = decode(heads[i]);
  return true;
}

}  // namespace

Request read_request() {
  Header &header = state.header;
  state.found = 0;
  if (!read_bytes(&header.magic, sizeof header.magic)) return END;
  if (header.magic == CALLS_MAGIC) {
    uint32_t count;
    return read_bytes(&count, sizeof count) && answer_calls(count) ? CALLS : END;
  }
  const bool whole = read_bytes(&header.magic + 1, sizeof header - sizeof header.magic);
  return whole && read_launch() ? LAUNCH : END;
}

void write_answer() {
  write_head(0, 0);
  for (unsigned i = 0; i < state.header.buffers; ++i) {
    const Buffer &buffer = state.buffers[i];
    if (!buffer.head.writable) continue;
    for (unsigned j = 0; j < buffer.head.pieces; ++j) {
      const Piece &piece = state.pieces[i][j];
      write_bytes(buffer.data + piece.offset, piece.bytes);
    }
  }
}

void write_findings(bool ends) {
  write_head(ends ? 3 : 2, state.found * sizeof(Finding));
  write_bytes(state.findings, state.found * sizeof(Finding));
}

void write_fault(const char *message, size_t length) {
  write_head(1, length);
  write_bytes(message, length);
  _exit(0);
}

}  // namespace gg

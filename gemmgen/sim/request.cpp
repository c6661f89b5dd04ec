#include "runner.h"

#include <cstring>
#include <unistd.h>

namespace gg {
namespace {

struct AnswerHead {
  uint32_t magic;
  uint32_t status;  // 0: the bytes of the writable buffers follow; 1: a message does
  uint64_t bytes;
};

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

GgArgument decode(const ArgumentHead &head) {
  GgArgument argument = {};
  if (head.kind == 2) {
    argument.pointer = state.buffers[head.buffer].data + head.value;
  } else {
    const auto bits = static_cast<uint32_t>(head.value);
    memcpy(&argument, &bits, sizeof bits);
  }
  return argument;
}

}  // namespace

// False at the end of standard input.
bool read_request() {
  Header &header = state.header;
  if (!read_bytes(&header, sizeof header)) return false;
  state.threads = header.block_x * header.block_y;
  if (header.magic != MAGIC || header.buffers > MAX_BUFFERS || header.arguments > MAX_ARGUMENTS ||
      state.threads > MAX_THREADS) {
    header.buffers = 0;
    fault("the request is malformed");
  }
  static ArgumentHead heads[MAX_ARGUMENTS];
  for (unsigned i = 0; i < header.buffers; ++i) {
    if (!read_bytes(&state.buffers[i].head, sizeof(BufferHead))) return false;
  }
  if (!read_bytes(heads, header.arguments * sizeof(ArgumentHead))) return false;
  for (unsigned i = 0; i < header.buffers; ++i) {
    Buffer &buffer = state.buffers[i];
    map_buffer(buffer);
    if (!read_bytes(buffer.data, buffer.head.bytes)) return false;
  }
  protect_buffers();
  for (unsigned i = 0; i < header.arguments; ++i) state.arguments[i] = decode(heads[i]);
  return true;
}

void write_answer() {
  AnswerHead head = {MAGIC, 0, 0};
  for (unsigned i = 0; i < state.header.buffers; ++i) {
    const BufferHead &buffer = state.buffers[i].head;
    if (buffer.writable) head.bytes += buffer.bytes;
  }
  write_bytes(&head, sizeof head);
  for (unsigned i = 0; i < state.header.buffers; ++i) {
    const Buffer &buffer = state.buffers[i];
    if (buffer.head.writable) write_bytes(buffer.data, buffer.head.bytes);
  }
}

void write_fault(const char *message, size_t length) {
  const AnswerHead head = {MAGIC, 1, length};
  write_bytes(&head, sizeof head);
  write_bytes(message, length);
  _exit(0);
}

}  // namespace gg

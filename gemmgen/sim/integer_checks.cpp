// The callbacks of -fsanitize=bounds and of the sanitizers of integer arithmetic, without their
// runtime: called when an index is outside its array's type, or an int overflows.

#include "runner.h"

#include <cstdio>

namespace gg {
namespace {

// What g++ passes; the layouts are those of its libsanitizer/ubsan.
struct SourceLocation {
  const char *file;
  uint32_t line, column;
};

struct Type {
  uint16_t kind;  // 0: an integer
  uint16_t info;  // bit 0: signed; the others: log2 of its bits
  char name[1];   // in quotes; longer than this
};

struct Operation {
  SourceLocation location;
  const Type *type;
};

struct Indexing {
  SourceLocation location;
  const Type *array, *index;
};

struct Shift {
  SourceLocation location;
  const Type *left, *right;
};

long long value_of(const Type *type, uintptr_t value) {
  if (type->kind != 0 || type->info >> 1 > 5) return static_cast<long long>(value);
  return type->info & 1 ? static_cast<int32_t>(value) : static_cast<uint32_t>(value);
}

[[noreturn]] void stop(Kind kind, const SourceLocation &location, const char *detail) {
  Finding finding = {};
  finding.kind = kind;
  finding.access = access_at(state.thread, 0, location.line, 0);
  snprintf(finding.detail, sizeof finding.detail, "%s", detail);
  report_last(finding);
}

[[noreturn]] void stop_operation(const Operation &operation, uintptr_t left, const char *sign,
                                 uintptr_t right) {
  char detail[96];
  snprintf(detail, sizeof detail, "%lld %s %lld does not fit %s",
           value_of(operation.type, left), sign, value_of(operation.type, right),
           operation.type->name);
  stop(ARITHMETIC, operation.location, detail);
}

}  // namespace
}  // namespace gg

extern "C" {
void __ubsan_handle_out_of_bounds(const gg::Indexing *data, uintptr_t index) {
  char detail[96];
  snprintf(detail, sizeof detail, "index %lld of %s", gg::value_of(data->index, index),
           data->array->name);
  gg::stop(gg::BOUNDS, data->location, detail);
}

void __ubsan_handle_add_overflow(const gg::Operation *data, uintptr_t left, uintptr_t right) {
  gg::stop_operation(*data, left, "+", right);
}

void __ubsan_handle_sub_overflow(const gg::Operation *data, uintptr_t left, uintptr_t right) {
  gg::stop_operation(*data, left, "-", right);
}

void __ubsan_handle_mul_overflow(const gg::Operation *data, uintptr_t left, uintptr_t right) {
  gg::stop_operation(*data, left, "*", right);
}

void __ubsan_handle_negate_overflow(const gg::Operation *data, uintptr_t value) {
  gg::stop_operation(*data, 0, "-", value);
}

void __ubsan_handle_divrem_overflow(const gg::Operation *data, uintptr_t left, uintptr_t right) {
  gg::stop_operation(*data, left, "/", right);
}

void __ubsan_handle_shift_out_of_bounds(const gg::Shift *data, uintptr_t left, uintptr_t right) {
  gg::stop_operation({data->location, data->left}, left, "shifted by", right);
}
}

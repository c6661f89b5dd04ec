// Models of PTX instructions, one function each, which ptx.py calls in place of `asm` statements.
// A name is the instruction's with all its modifiers, `_` for `.`; operands are as in the PTX ISA.
// Over 300 lines: it is a table, a model of a few lines for each instruction.
#pragma once

// The runner's part of the models: async_copies.cpp, named_barriers.cpp, warp.cpp, wmma.cpp,
// mma.cpp, blocks.cpp.
extern "C" {
enum gg_type { GG_F16, GG_BF16, GG_E4M3, GG_E5M2, GG_S8, GG_TF32 };

// How the tensor cores of the text's target add products; group 0: the text multiplies others.
struct GgSumRule {
  unsigned group, fraction, bits;
  int least;
  bool is_converted;
};
extern const GgSumRule gg_sum_rule;

void gg_issue_copy(void *target, const void *source, int bytes, int valid);
void gg_commit_copies();
void gg_await(int pending);
void gg_named_barrier(unsigned number, unsigned threads);
void gg_named_barrier_of_all(unsigned number);
bool gg_named_barrier_or(unsigned number, unsigned threads, bool value);
unsigned gg_increment(unsigned *counter, unsigned last);
unsigned gg_increment_ordered(unsigned *counter, unsigned last);
void gg_add_float(float *target, float value);
void gg_add_double(double *target, double value);
void gg_add_int(int *target, unsigned value);

// An address of shared memory is the offset from its beginning; 1 << 31 for other memory.
unsigned gg_shared_offset(const void *pointer);
void *gg_shared_pointer(unsigned offset);

// Records the line at which the running thread calls a warp-collective function.
void gg_at(int line);
// Deposits the lane's bytes and, when all lanes of its warp have done so, returns the address of
// lane 0's; each next lane's are GG_DEPOSIT bytes further.  They are valid until the lane's second
// exchange after this one.
const unsigned char *gg_exchange(const void *bytes, unsigned size);
void gg_warp_multiply(float *sum, const unsigned *a, const unsigned *b, bool is_f16,
                      bool a_by_rows, bool b_by_rows);
void gg_begin_fragment(const void *first, long long pitch);
void gg_mixed_fragment();
void gg_begin_row(const void *row);
void gg_not_finite();
void gg_mma(float *acc, const unsigned *a, const unsigned *b, unsigned rows, gg_type of_a,
            gg_type of_b);
void gg_mma_of_integers(unsigned *acc, const unsigned *a, const unsigned *b, unsigned rows,
                        gg_type of_a, gg_type of_b);
void gg_mma_of_doubles(double *acc, const double *a, const double *b, unsigned rows,
                       unsigned steps);
}
#define GG_DEPOSIT 128

inline __SIZE_TYPE__ __cvta_generic_to_shared(const void *pointer) {
  return gg_shared_offset(pointer);
}

namespace gg_ptx {

#define GG_MODEL inline __attribute__((always_inline))

typedef unsigned short b16;
typedef unsigned b32;
typedef unsigned long long b64;

// Operands of a statement, by their constraints.  Another size is refused, as nvcc does.

template <typename T> b32 in_r(T) = delete;
GG_MODEL b32 in_r(int value) { return static_cast<b32>(value); }
GG_MODEL b32 in_r(unsigned value) { return value; }
template <typename T> b16 in_h(T) = delete;
GG_MODEL b16 in_h(unsigned short value) { return value; }
template <typename T> b64 in_l(T) = delete;
template <typename T> GG_MODEL b64 in_l(T *pointer) { return reinterpret_cast<b64>(pointer); }
GG_MODEL b64 in_l(unsigned long long value) { return value; }
template <typename T> float in_f(T) = delete;
GG_MODEL float in_f(float value) { return value; }
template <typename T> double in_d(T) = delete;
GG_MODEL double in_d(double value) { return value; }
GG_MODEL b32 &out_r(unsigned &target) { return target; }
GG_MODEL b32 &out_r(int &target) { return reinterpret_cast<b32 &>(target); }
GG_MODEL b16 &out_h(unsigned short &target) { return target; }
template <typename T> GG_MODEL T *&out_l(T *&target) { return target; }
GG_MODEL b64 &out_l(unsigned long long &target) { return target; }
GG_MODEL float &out_f(float &target) { return target; }
GG_MODEL double &out_d(double &target) { return target; }

template <long long number>
struct Immediate {
  constexpr operator b32() const { return static_cast<b32>(number); }
};

struct Shared {
  b32 offset;
};
struct Generic {
  b64 bits;
};
GG_MODEL Shared address(b32 offset) { return {offset}; }
GG_MODEL Generic address(b64 bits) { return {bits}; }
template <typename T> GG_MODEL T *pointer_to(Shared address) {
  return static_cast<T *>(gg_shared_pointer(address.offset));
}
template <typename T> GG_MODEL T *pointer_to(Generic address) {
  return reinterpret_cast<T *>(address.bits);
}

template <typename T, int count>
struct Vector {
  T *elements[count];
};
template <typename T, typename... Rest>
GG_MODEL Vector<T, 1 + sizeof...(Rest)> vector(T &first, Rest &...rest) {
  return {{&first, &rest...}};
}

// An output of a statement without an instruction, which says that something else has set it.
template <typename T> GG_MODEL void changes(T &) {}

template <typename To, typename From> GG_MODEL To bits_of(From value) {
  static_assert(sizeof(To) == sizeof(From), "registers of one size");
  To bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
}

// Moves.

struct SpecialRegister {
  b32 value;
};
GG_MODEL void mov_u32(b32 &d, SpecialRegister a) { d = a.value; }

GG_MODEL void mov_b32(float &d, b32 a) { d = bits_of<float>(a); }
template <typename T> GG_MODEL void mov_b32(T &d, Vector<b16, 2> a) {
  d = bits_of<T>(*a.elements[0] | static_cast<b32>(*a.elements[1]) << 16);
}
template <typename T> GG_MODEL void mov_b32(Vector<b16, 2> d, T a) {
  *d.elements[0] = static_cast<b16>(bits_of<b32>(a));
  *d.elements[1] = static_cast<b16>(bits_of<b32>(a) >> 16);
}
template <typename T> GG_MODEL void mov_b64(T &d, Vector<b32, 2> a) {
  d = bits_of<T>(*a.elements[0] | static_cast<b64>(*a.elements[1]) << 32);
}
template <typename T> GG_MODEL void mov_b64(Vector<b32, 2> d, T a) {
  *d.elements[0] = static_cast<b32>(bits_of<b64>(a));
  *d.elements[1] = static_cast<b32>(bits_of<b64>(a) >> 32);
}

// Conversions: to nearest even; overflow gives infinity, and every NaN is the one with all bits of
// its significand set.

GG_MODEL void cvt_f32_f16(float &d, b16 bits) {
  const b32 sign = (bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
  if (magnitude > 0x7c00) {
    d = bits_of<float>(0x7fffffffu);
  } else if (magnitude == 0x7c00) {
    d = bits_of<float>(sign | 0x7f800000);
  } else if (magnitude >= 0x400) {  // the exponent's bias is 15, and 127 in a float
    d = bits_of<float>(sign | ((magnitude << 13) + (112u << 23)));
  } else {
    d = bits_of<float>(sign | bits_of<b32>(static_cast<float>(magnitude) * 0x1p-24f));
  }
}
GG_MODEL void cvt_rn_f16_f32(b16 &d, float a) {
  const b32 bits = bits_of<b32>(a), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  b32 half = 0x7c00;  // 65520 and above rounds to infinity
  if (magnitude > 0x7f800000) {
    d = 0x7fff;
    return;
  }
  if (magnitude < 0x38800000) {                                // below 2^-14: a multiple of 2^-24
    half = bits_of<b32>(bits_of<float>(magnitude) + 0.5f) - 0x3f000000;  // ulp(0.5) is 2^-24
  } else if (magnitude < 0x477ff000) {
    half = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
  }
  d = static_cast<b16>(sign | half);
}
GG_MODEL void cvt_rn_bf16_f32(b16 &d, float a) {
  const b32 bits = bits_of<b32>(a);
  d = static_cast<b16>(a != a ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
GG_MODEL void cvt_rn_bf16x2_f32(b32 &d, float high, float low) {
  b16 upper, lower;
  cvt_rn_bf16_f32(upper, high), cvt_rn_bf16_f32(lower, low);
  d = static_cast<b32>(upper) << 16 | lower;
}

// FP8; those of a pair are the high and the low byte.  They saturate, infinities too.

template <int fraction>  // its bits: 3 of e4m3, 2 of e5m2
GG_MODEL b32 byte_of(float a) {
  constexpr b32 bias = fraction == 3 ? 7 : 15, drop = 23 - fraction;
  constexpr float most = fraction == 3 ? 448 : 57344, least = fraction == 3 ? 0x1p-6f : 0x1p-14f;
  constexpr float aligned = least * (1 << (23 - fraction));  // in whose binade subnormals are ulps
  if (a != a) return 0x7f;
  const b32 sign = bits_of<b32>(a) >> 24 & 0x80;
  const float magnitude = bits_of<float>(bits_of<b32>(a) & 0x7fffffff);
  const float bounded = magnitude > most ? most : magnitude;
  if (bounded < least) return sign | (bits_of<b32>(bounded + aligned) - bits_of<b32>(aligned));
  const b32 bits = bits_of<b32>(bounded) - ((127 - bias) << 23);
  return sign | (bits + (1u << (drop - 1)) - 1 + (bits >> drop & 1)) >> drop;
}
template <int fraction>
GG_MODEL b32 half_of(b32 byte) {
  constexpr b32 bias = fraction == 3 ? 7 : 15;
  const b32 sign = (byte & 0x80) << 8, exponent = (byte & 0x7f) >> fraction;
  const b32 rest = byte & ((1u << fraction) - 1);
  if (fraction == 3 ? (byte & 0x7f) == 0x7f : (byte & 0x7f) > 0x7c) return 0x7fff;
  if (fraction == 2) return byte << 8;  // the upper byte of an f16
  const float number = exponent == 0
                           ? static_cast<float>(rest) * 0x1p-9f
                           : bits_of<float>((exponent + 127 - bias) << 23 | rest << (23 - fraction));
  b16 half;
  cvt_rn_f16_f32(half, number);
  return sign | half;
}
#define GG_BYTE_FLOAT(type, fraction)                                                           \
  GG_MODEL void cvt_rn_satfinite_##type##x2_f32(b16 &d, float high, float low) {                \
    d = static_cast<b16>(byte_of<fraction>(high) << 8 | byte_of<fraction>(low));                \
  }                                                                                             \
  GG_MODEL void cvt_rn_f16x2_##type##x2(b32 &d, b16 pair) {                                     \
    d = half_of<fraction>(pair >> 8) << 16 | half_of<fraction>(pair & 0xffu);                   \
  }
GG_BYTE_FLOAT(e4m3, 3)
GG_BYTE_FLOAT(e5m2, 2)

// tf32: an f32 with 10 bits of its significand, rounded to the nearest, of two away from zero.
template <typename T> GG_MODEL void cvt_rna_tf32_f32(b32 &d, T number) {
  const b32 a = bits_of<b32>(number);
  const b32 magnitude = a & 0x7fffffff;
  d = magnitude > 0x7f800000 ? 0x7fffffff : magnitude == 0x7f800000 ? a : (a + 0x1000) & ~0x1fffu;
}

// To the nearest integer, of two the even one; a NaN is 0.
GG_MODEL void cvt_rni_sat_s8_f32(b32 &d, float a) {
  const float nearest = __builtin_rintf(a);
  const float bounded = nearest < -128 ? -128 : nearest > 127 ? 127 : nearest;
  d = static_cast<b32>(a != a ? 0 : static_cast<int>(bounded));
}

// Predicates.

typedef bool pred;

template <typename A, typename B> GG_MODEL void selp_b32(b32 &d, A a, B b, pred chosen) {
  d = chosen ? static_cast<b32>(a) : static_cast<b32>(b);
}
GG_MODEL void testp_finite_f32(pred &d, float a) {
  d = a - a == 0;
  if (!d) gg_not_finite();
}

// Integer arithmetic, which wraps.

GG_MODEL void mad_lo_s32(b32 &d, b32 a, b32 b, b32 c) { d = a * b + c; }

// Without a mode, nibble i of the selector picks byte i of the result from the eight of b and a; its
// fourth bit would spread a sign.
template <long long selector>
GG_MODEL void prmt_b32(b32 &d, b32 a, b32 b, Immediate<selector>) {
  static_assert((selector & ~0x7777LL) == 0, "prmt: a nibble picks one of eight bytes");
  const b64 bytes = static_cast<b64>(b) << 32 | a;
  b32 result = 0;
  for (int i = 0; i < 4; ++i)
    result |= static_cast<b32>(bytes >> (selector >> 4 * i & 7) * 8 & 0xff) << 8 * i;
  d = result;
}

#ifndef GG_RUNNER

// Asynchronous copies.  The optional fourth operand is src-size: zeros fill the rest.

template <long long bytes>
GG_MODEL void cp_async_ca_shared_global(Shared to, Generic from, Immediate<bytes>, b32 valid) {
  static_assert(bytes == 4 || bytes == 8 || bytes == 16, "cp.async.ca copies 4, 8 or 16 bytes");
  gg_issue_copy(pointer_to<void>(to), pointer_to<void>(from), bytes, static_cast<int>(valid));
}
template <long long bytes>
GG_MODEL void cp_async_cg_shared_global(Shared to, Generic from, Immediate<bytes>, b32 valid) {
  static_assert(bytes == 16, "cp.async.cg copies 16 bytes");
  gg_issue_copy(pointer_to<void>(to), pointer_to<void>(from), bytes, static_cast<int>(valid));
}
template <long long bytes>
GG_MODEL void cp_async_ca_shared_global(Shared to, Generic from, Immediate<bytes> size) {
  cp_async_ca_shared_global(to, from, size, bytes);
}
template <long long bytes>
GG_MODEL void cp_async_cg_shared_global(Shared to, Generic from, Immediate<bytes> size) {
  cp_async_cg_shared_global(to, from, size, bytes);
}

GG_MODEL void cp_async_commit_group() { gg_commit_copies(); }
template <long long pending> GG_MODEL void cp_async_wait_group(Immediate<pending>) {
  static_assert(pending >= 0, "a number of groups");
  gg_await(pending);
}

// Barriers of a block: of whole warps, whose lanes come together.

GG_MODEL void bar_sync(b32 number, b32 threads) { gg_named_barrier(number, threads); }
GG_MODEL void bar_sync(b32 number) { gg_named_barrier_of_all(number); }
GG_MODEL void bar_red_or_pred(pred &any, b32 number, b32 threads, pred own) {
  any = gg_named_barrier_or(number, threads, own);
}

// Atomics of global memory.

GG_MODEL void atom_acq_rel_gpu_inc_u32(b32 &d, Generic a, b32 last) {
  d = gg_increment_ordered(pointer_to<unsigned>(a), last);
}
GG_MODEL void atom_relaxed_gpu_inc_u32(b32 &d, Generic a, b32 last) {
  d = gg_increment(pointer_to<unsigned>(a), last);
}
GG_MODEL void red_relaxed_gpu_add_f32(Generic a, float value) {
  gg_add_float(pointer_to<float>(a), value);
}
GG_MODEL void red_relaxed_gpu_add_s32(Generic a, b32 value) {
  gg_add_int(pointer_to<int>(a), value);
}
GG_MODEL void red_relaxed_gpu_add_f64(Generic a, double value) {
  gg_add_double(pointer_to<double>(a), value);
}

// Shuffles of all 32 lanes.  `bound` holds the clamp and, from bit 8 on, the segment mask.

GG_MODEL unsigned lane() { return (threadIdx.x + threadIdx.y * blockDim.x) % 32; }

template <typename D, typename A, typename Choose>
GG_MODEL void shuffle(D &d, A a, b32 members, Choose choose) {
  static_assert(sizeof(D) == 4 && sizeof(A) == 4, "shfl.b32 moves 4 bytes");
  if (members != 0xffffffff) __builtin_trap();
  const unsigned char *all = gg_exchange(&a, sizeof a);
  __builtin_memcpy(&d, all + choose(static_cast<int>(lane())) * GG_DEPOSIT, sizeof d);
}
GG_MODEL int last_lane(int mine, b32 bound) {
  const b32 segment = bound >> 8 & 31, clamp = bound & 31;
  return static_cast<int>((static_cast<b32>(mine) & segment) | (clamp & ~segment));
}
template <typename D, typename A>
GG_MODEL void shfl_sync_bfly_b32(D &d, A a, b32 mask, b32 bound, b32 members) {
  shuffle(d, a, members, [=](int mine) {
    const int other = mine ^ static_cast<int>(mask & 31);
    return other <= last_lane(mine, bound) ? other : mine;
  });
}
template <typename D, typename A>
GG_MODEL void shfl_sync_idx_b32(D &d, A a, b32 from, b32 bound, b32 members) {
  shuffle(d, a, members, [=](int mine) {
    const int segment = static_cast<int>(bound >> 8 & 31);
    const int other = (mine & segment) | (static_cast<int>(from & 31) & ~segment);
    return other <= last_lane(mine, bound) ? other : mine;
  });
}
template <typename D, typename A>
GG_MODEL void shfl_sync_down_b32(D &d, A a, b32 delta, b32 bound, b32 members) {
  shuffle(d, a, members, [=](int mine) {
    const int other = mine + static_cast<int>(delta & 31);
    return other <= last_lane(mine, bound) ? other : mine;
  });
}
template <typename D, typename A>
GG_MODEL void shfl_sync_up_b32(D &d, A a, b32 delta, b32 bound, b32 members) {
  shuffle(d, a, members, [=](int mine) {
    const int other = mine - static_cast<int>(delta & 31);
    return other >= last_lane(mine, bound) ? other : mine;
  });
}

// WMMA.  A lane holds half a line of a fragment, 8 of 16 elements contiguous in memory; of the
// accumulator, half a row.  Which half is unspecified by PTX: here it differs with operand and
// layout, so that a fragment multiplied as another than it was loaded as gives wrong results.
// Of f16 each half is held twice.

constexpr b32 TWIN = 0xa5c3960f;

struct alignas(16) HalfLine {
  b32 words[4];
};
GG_MODEL unsigned fragment_half(unsigned lane, bool is_b, bool by_columns) {
  return lane ^ (is_b ? 2u : 0u) ^ (by_columns ? 1u : 0u);
}
template <int registers>
GG_MODEL void load_fragment(Vector<b32, registers> d, Shared from, b32 pitch, bool is_b,
                            bool by_columns) {
  const auto *source = pointer_to<const b16>(from);
  const auto stride = static_cast<int>(pitch);
  gg_begin_fragment(source, 2LL * stride);
  const int half = static_cast<int>(fragment_half(lane(), is_b, by_columns));
  const b16 *first = source + half / 2 * stride + half % 2 * 8;
  const HalfLine read = *reinterpret_cast<const HalfLine *>(first);
  for (int i = 0; i < registers; ++i) *d.elements[i] = read.words[i % 4] ^ (i < 4 ? 0 : TWIN);
}
// Reads a fragment's registers, which must be those of one load, in its order.
template <int registers>
GG_MODEL void take_fragment(b32 (&taken)[registers], Vector<b32, registers> from) {
  for (int i = 0; i < registers; ++i) {
    taken[i] = *from.elements[i];
    if (i >= 4 && taken[i] != (taken[i - 4] ^ TWIN)) gg_mixed_fragment();
  }
}
template <int registers>
GG_MODEL void multiply_fragments(Vector<float, 8> d, Vector<b32, registers> a,
                                 Vector<b32, registers> b, Vector<float, 8> c, bool a_by_rows,
                                 bool b_by_rows) {
  float sum[8];
  b32 left[registers], right[registers];
  for (int i = 0; i < 8; ++i) sum[i] = *c.elements[i];
  take_fragment(left, a);
  take_fragment(right, b);
  gg_warp_multiply(sum, left, right, registers == 8, a_by_rows, b_by_rows);
  for (int i = 0; i < 8; ++i) *d.elements[i] = sum[i];
}
#define GG_WMMA_LOAD(side, layout, type, registers)                                             \
  GG_MODEL void wmma_load_##side##_sync_aligned_##layout##_m16n16k16_shared_##type(             \
      Vector<b32, registers> d, Shared from, b32 pitch) {                                       \
    load_fragment(d, from, pitch, #side[0] == 'b', #layout[0] == 'c');                          \
  }
#define GG_WMMA_MULTIPLY(a_layout, b_layout, types, registers)                                  \
  GG_MODEL void wmma_mma_sync_aligned_##a_layout##_##b_layout##_m16n16k16_f32_##types(          \
      Vector<float, 8> d, Vector<b32, registers> a, Vector<b32, registers> b,                   \
      Vector<float, 8> c) {                                                                     \
    multiply_fragments(d, a, b, c, #a_layout[0] == 'r', #b_layout[0] == 'r');                   \
  }
#define GG_WMMA(type, types, registers)              \
  GG_WMMA_LOAD(a, row, type, registers)              \
  GG_WMMA_LOAD(a, col, type, registers)              \
  GG_WMMA_LOAD(b, row, type, registers)              \
  GG_WMMA_LOAD(b, col, type, registers)              \
  GG_WMMA_MULTIPLY(row, row, types, registers)       \
  GG_WMMA_MULTIPLY(row, col, types, registers)       \
  GG_WMMA_MULTIPLY(col, row, types, registers)       \
  GG_WMMA_MULTIPLY(col, col, types, registers)
GG_WMMA(f16, f32, 8)
GG_WMMA(bf16, bf16_bf16_f32, 4)

GG_MODEL void wmma_store_d_sync_aligned_row_m16n16k16_shared_f32(Shared to, Vector<float, 8> sum,
                                                                 b32 pitch) {
  auto *target = pointer_to<float>(to);
  const int stride = static_cast<int>(pitch), mine = static_cast<int>(lane());
  gg_begin_fragment(target, 4LL * stride);
  for (int i = 0; i < 8; ++i) target[mine / 2 * stride + mine % 2 * 8 + i] = *sum.elements[i];
}
GG_MODEL void wmma_store_d_sync_aligned_col_m16n16k16_shared_f32(Shared to, Vector<float, 8> sum,
                                                                 b32 pitch) {
  auto *target = pointer_to<float>(to);
  const int stride = static_cast<int>(pitch), mine = static_cast<int>(lane());
  gg_begin_fragment(target, 4LL * stride);
  for (int i = 0; i < 8; ++i) target[(mine % 2 * 8 + i) * stride + mine / 2] = *sum.elements[i];
}

// ldmatrix, stmatrix and mma.sync: PTX states what each lane holds.

template <int count>
GG_MODEL void load_matrices(Vector<b32, count> d, Shared row, bool is_transposed) {
  const auto *mine = pointer_to<const b16>(row);
  if (lane() < 8 * count) gg_begin_row(mine);
  const unsigned char *all = gg_exchange(&mine, sizeof mine);
  const unsigned line = lane() / 4, pair = lane() % 4 * 2;
  for (unsigned i = 0; i < count; ++i) {
    const b16 *rows[8];
    for (unsigned r = 0; r < 8; ++r) {
      __builtin_memcpy(&rows[r], all + (8 * i + r) * GG_DEPOSIT, sizeof rows[r]);
    }
    if (is_transposed) {
      *d.elements[i] = rows[pair][line] | static_cast<b32>(rows[pair + 1][line]) << 16;
    } else {  // at once: they may be one element
      *d.elements[i] = *reinterpret_cast<const b32 *>(rows[line] + pair);
    }
  }
}
#define GG_LDMATRIX(count)                                                                        \
  GG_MODEL void ldmatrix_sync_aligned_m8n8_x##count##_shared_b16(Vector<b32, count> d,            \
                                                                 Shared row) {                    \
    load_matrices(d, row, false);                                                                 \
  }                                                                                               \
  GG_MODEL void ldmatrix_sync_aligned_m8n8_x##count##_trans_shared_b16(Vector<b32, count> d,      \
                                                                       Shared row) {              \
    load_matrices(d, row, true);                                                                  \
  }
GG_LDMATRIX(1)
GG_LDMATRIX(2)
GG_LDMATRIX(4)

// Each lane writes the elements that it holds, to rows that others have named.
template <int count>
GG_MODEL void store_matrices(Shared row, Vector<b32, count> values, bool is_transposed) {
  auto *const mine = pointer_to<b16>(row);
  if (lane() < 8 * count) gg_begin_row(mine);
  const unsigned char *all = gg_exchange(&mine, sizeof mine);
  const unsigned line = lane() / 4, pair = lane() % 4 * 2;
  for (unsigned i = 0; i < count; ++i) {
    b16 *rows[8];
    for (unsigned r = 0; r < 8; ++r) {
      __builtin_memcpy(&rows[r], all + (8 * i + r) * GG_DEPOSIT, sizeof rows[r]);
    }
    (is_transposed ? rows[pair][line] : rows[line][pair]) = static_cast<b16>(*values.elements[i]);
    (is_transposed ? rows[pair + 1][line] : rows[line][pair + 1]) =
        static_cast<b16>(*values.elements[i] >> 16);
  }
}
#define GG_STMATRIX(count)                                                                        \
  GG_MODEL void stmatrix_sync_aligned_m8n8_x##count##_shared_b16(Shared row,                      \
                                                                 Vector<b32, count> values) {     \
    store_matrices(row, values, false);                                                           \
  }                                                                                               \
  GG_MODEL void stmatrix_sync_aligned_m8n8_x##count##_trans_shared_b16(                           \
      Shared row, Vector<b32, count> values) {                                                    \
    store_matrices(row, values, true);                                                            \
  }
GG_STMATRIX(1)
GG_STMATRIX(2)
GG_STMATRIX(4)

GG_MODEL void multiply_warps(float *acc, const b32 *a, const b32 *b, unsigned rows, gg_type of_a,
                             gg_type of_b) {
  gg_mma(acc, a, b, rows, of_a, of_b);
}
GG_MODEL void multiply_warps(b32 *acc, const b32 *a, const b32 *b, unsigned rows, gg_type of_a,
                             gg_type of_b) {
  gg_mma_of_integers(acc, a, b, rows, of_a, of_b);
}
template <typename Sum, int of_a, int of_b>
GG_MODEL void multiply_matrices(Vector<Sum, 4> d, Vector<b32, of_a> a, Vector<b32, of_b> b,
                                Vector<Sum, 4> c, gg_type a_type, gg_type b_type) {
  Sum acc[4];
  b32 left[of_a], right[of_b];
  for (int i = 0; i < 4; ++i) acc[i] = *c.elements[i];
  for (int i = 0; i < of_a; ++i) left[i] = *a.elements[i];
  for (int i = 0; i < of_b; ++i) right[i] = *b.elements[i];
  multiply_warps(acc, left, right, of_b, a_type, b_type);
  for (int i = 0; i < 4; ++i) *d.elements[i] = acc[i];
}
#define GG_MMA(shape, sum, Sum, a_name, a_type, b_name, b_type, of_b)                             \
  GG_MODEL void mma_sync_aligned_##shape##_row_col_##sum##_##a_name##_##b_name##_##sum(           \
      Vector<Sum, 4> d, Vector<b32, 2 * of_b> a, Vector<b32, of_b> b, Vector<Sum, 4> c) {         \
    multiply_matrices(d, a, b, c, a_type, b_type);                                                \
  }
GG_MMA(m16n8k16, f32, float, f16, GG_F16, f16, GG_F16, 2)
GG_MMA(m16n8k16, f32, float, bf16, GG_BF16, bf16, GG_BF16, 2)
GG_MMA(m16n8k8, f32, float, f16, GG_F16, f16, GG_F16, 1)
GG_MMA(m16n8k32, s32, b32, s8, GG_S8, s8, GG_S8, 2)
GG_MMA(m16n8k32, f32, float, e4m3, GG_E4M3, e4m3, GG_E4M3, 2)
GG_MMA(m16n8k32, f32, float, e4m3, GG_E4M3, e5m2, GG_E5M2, 2)
GG_MMA(m16n8k32, f32, float, e5m2, GG_E5M2, e4m3, GG_E4M3, 2)
GG_MMA(m16n8k32, f32, float, e5m2, GG_E5M2, e5m2, GG_E5M2, 2)
GG_MMA(m16n8k8, f32, float, tf32, GG_TF32, tf32, GG_TF32, 2)

// Lanes hold elements of 8 bytes in the order of m16n8k4, of all `rows` for one k, then 4 further.
#define GG_MMA_OF_DOUBLES(shape, rows, steps)                                                     \
  GG_MODEL void mma_sync_aligned_##shape##_row_col_f64_f64_f64_f64(                               \
      Vector<double, 2 * rows> d, Vector<double, rows * steps> a, Vector<double, steps> b,        \
      Vector<double, 2 * rows> c) {                                                               \
    double acc[2 * rows], left[rows * steps], right[steps];                                      \
    for (int i = 0; i < 2 * rows; ++i) acc[i] = *c.elements[i];                                  \
    for (int i = 0; i < rows * steps; ++i) left[i] = *a.elements[i];                              \
    for (int i = 0; i < steps; ++i) right[i] = *b.elements[i];                                    \
    gg_mma_of_doubles(acc, left, right, rows, steps);                                            \
    for (int i = 0; i < 2 * rows; ++i) *d.elements[i] = acc[i];                                  \
  }
GG_MMA_OF_DOUBLES(m8n8k4, 1, 1)
GG_MMA_OF_DOUBLES(m16n8k4, 2, 1)
GG_MMA_OF_DOUBLES(m16n8k8, 2, 2)
GG_MMA_OF_DOUBLES(m16n8k16, 2, 4)

#endif

}  // namespace gg_ptx

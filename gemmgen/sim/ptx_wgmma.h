// Models of the PTX instructions of a warpgroup's multiplications (wgmma), as those of ptx.h.
#pragma once

// wgmma.cpp
extern "C" {
void gg_wgmma_fences();
void gg_wgmma_multiplies(gg_type a_type, gg_type b_type, unsigned columns, unsigned *const *acc,
                         bool integers, unsigned long long a, unsigned long long b,
                         bool accumulates, bool a_mn_major, bool b_mn_major);
void gg_wgmma_commits();
void gg_wgmma_waits(int pending);
void gg_wgmma_names(unsigned *sum);
}

namespace gg_ptx {

template <long long number> GG_MODEL void setp_ne_b32(pred &d, b32 a, Immediate<number> b) {
  d = a != b;
}

GG_MODEL void wgmma_fence_sync_aligned() { gg_wgmma_fences(); }
GG_MODEL void wgmma_commit_group_sync_aligned() { gg_wgmma_commits(); }
template <long long pending>
GG_MODEL void wgmma_wait_group_sync_aligned(Immediate<pending>) {
  static_assert(pending >= 0 && pending < 8, "a number of groups, 0 to 7");
  gg_wgmma_waits(pending);
}

GG_MODEL void changes(float &sum) { gg_wgmma_names(reinterpret_cast<unsigned *>(&sum)); }
GG_MODEL void changes(b32 &sum) { gg_wgmma_names(&sum); }

// Operands in shared memory; those of 16 bits may lie along m or n.  `scale_a` and `scale_b` are 1, or
// -1: a factor.

GG_MODEL constexpr bool is_integer(const float *) { return false; }
GG_MODEL constexpr bool is_integer(const b32 *) { return true; }
template <typename T, int acc>
GG_MODEL void multiply_by_group(gg_type a_type, gg_type b_type, Vector<T, acc> d, b64 a, b64 b,
                                pred more, bool a_mn_major = false, bool b_mn_major = false) {
  gg_wgmma_multiplies(a_type, b_type, 2 * acc, reinterpret_cast<unsigned *const *>(d.elements),
                      is_integer(d.elements[0]), a, b, more, a_mn_major, b_mn_major);
}
#define GG_WGMMA_NAME(columns, depth, sum, a, b) \
  wgmma_mma_async_sync_aligned_m64n##columns##k##depth##_##sum##_##a##_##b
#define GG_WGMMA_HALVES(columns, type, number)                                                   \
  template <long long scale_a, long long scale_b, long long turn_a, long long turn_b>            \
  GG_MODEL void GG_WGMMA_NAME(columns, 16, f32, type, type)(                                     \
      Vector<float, columns / 2> d, b64 a, b64 b, pred more, Immediate<scale_a>,                 \
      Immediate<scale_b>, Immediate<turn_a>, Immediate<turn_b>) {                                \
    static_assert(scale_a == 1 && scale_b == 1, "operands that are not negated");                \
    static_assert((turn_a | turn_b | 1) == 1, "0: along k; 1: along m or n");                    \
    multiply_by_group(number, number, d, a, b, more, turn_a == 1, turn_b == 1);                  \
  }
#define GG_WGMMA_FLOATS(columns, k, a_name, a_type, b_name, b_type)                              \
  template <long long scale_a, long long scale_b>                                                \
  GG_MODEL void GG_WGMMA_NAME(columns, k, f32, a_name, b_name)(                                  \
      Vector<float, columns / 2> d, b64 a, b64 b, pred more, Immediate<scale_a>,                 \
      Immediate<scale_b>) {                                                                      \
    static_assert(scale_a == 1 && scale_b == 1, "operands that are not negated");                \
    multiply_by_group(a_type, b_type, d, a, b, more);                                            \
  }
#define GG_WGMMA_INTEGERS(columns)                                                               \
  GG_MODEL void GG_WGMMA_NAME(columns, 32, s32, s8, s8)(Vector<b32, columns / 2> d, b64 a,       \
                                                        b64 b, pred more) {                      \
    multiply_by_group(GG_S8, GG_S8, d, a, b, more);                                              \
  }
#define GG_WGMMA_OF(columns)                                       \
  GG_WGMMA_HALVES(columns, f16, GG_F16)                            \
  GG_WGMMA_HALVES(columns, bf16, GG_BF16)                          \
  GG_WGMMA_FLOATS(columns, 8, tf32, GG_TF32, tf32, GG_TF32)        \
  GG_WGMMA_FLOATS(columns, 32, e4m3, GG_E4M3, e4m3, GG_E4M3)       \
  GG_WGMMA_FLOATS(columns, 32, e4m3, GG_E4M3, e5m2, GG_E5M2)       \
  GG_WGMMA_FLOATS(columns, 32, e5m2, GG_E5M2, e4m3, GG_E4M3)       \
  GG_WGMMA_FLOATS(columns, 32, e5m2, GG_E5M2, e5m2, GG_E5M2)
#define GG_WGMMA_FOUR(a, b, c, d) GG_WGMMA_OF(a) GG_WGMMA_OF(b) GG_WGMMA_OF(c) GG_WGMMA_OF(d)
GG_WGMMA_FOUR(8, 16, 24, 32)
GG_WGMMA_FOUR(40, 48, 56, 64)
GG_WGMMA_FOUR(72, 80, 88, 96)
GG_WGMMA_FOUR(104, 112, 120, 128)
GG_WGMMA_FOUR(136, 144, 152, 160)
GG_WGMMA_FOUR(168, 176, 184, 192)
GG_WGMMA_FOUR(200, 208, 216, 224)
GG_WGMMA_FOUR(232, 240, 248, 256)
#define GG_WGMMA_INTEGERS_FOUR(a, b, c, d) \
  GG_WGMMA_INTEGERS(a) GG_WGMMA_INTEGERS(b) GG_WGMMA_INTEGERS(c) GG_WGMMA_INTEGERS(d)
GG_WGMMA_INTEGERS_FOUR(8, 16, 24, 32)
GG_WGMMA_INTEGERS_FOUR(48, 64, 80, 96)
GG_WGMMA_INTEGERS_FOUR(112, 128, 144, 160)
GG_WGMMA_INTEGERS_FOUR(176, 192, 208, 224)
GG_WGMMA_INTEGERS(240)
GG_WGMMA_INTEGERS(256)

}  // namespace gg_ptx

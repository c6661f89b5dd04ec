"""Words that no name of a schedule may be, whatever the rest of it says.

They are words of C++ and CUDA, macros, functions that kernels call, and the names that the emitted
text uses in every kernel.  Names that follow from a schedule's own are in ``reserved``.
"""

from __future__ import annotations

import re
from functools import lru_cache

from gemmgen.ir.cnames import MACROS, TYPES, is_global
from gemmgen.ir.expr import FUNCTIONS
from gemmgen.ir.launch_attribute import ATTRIBUTES

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
LETTER = re.compile(r"[a-z][a-z0-9_]{0,15}")


def _words(*lines: str) -> frozenset[str]:
    return frozenset(word for line in lines for word in line.split())


CPP = _words("""
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t
    char32_t class compl concept const consteval constexpr constinit const_cast continue co_await
    co_return co_yield decltype default delete do double dynamic_cast else enum explicit export
    extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
    nullptr operator or or_eq private protected public register reinterpret_cast requires restrict
    return short signed sizeof static static_assert static_cast struct switch template this
    thread_local throw true try typedef typeid typename typeof union unsigned using virtual void
    volatile wchar_t while xor xor_eq final override import module main std
    """)
_CUDA = _words("""
    threadIdx blockIdx blockDim gridDim warpSize dim3 half half2 nv_bfloat16 nv_bfloat162 uchar
    ushort uint ulong clock clock64 printf malloc free memcpy memset memmove assert abort exit trap
    surfaceReference textureReference linux unix NULL NAN INFINITY EOF BUFSIZ RAND_MAX HUGE_VAL
    HUGE_VALF errno stdin stdout stderr signgam
    """)
_MATH = _words("""
    abs labs llabs fabs min max fmin fmax fma exp exp2 exp10 expm1 log log2 log10 log1p logb sqrt
    rsqrt cbrt rcbrt pow sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh sincos
    sinpi cospi erf erfc erfinv erfcinv erfcx normcdf normcdfinv tgamma lgamma ceil floor trunc rint
    nearbyint round lround llround lrint llrint fmod remainder remquo fdim hypot rhypot ldexp frexp
    scalbn scalbln modf copysign nan nextafter ilogb isfinite isinf isnan signbit umin umax
    """)
_PATTERNS = (
    (re.compile(r"u?(char|short|int|long|longlong|float|double|half)[1-4](_\w+)?"), "a CUDA type"),
    (
        re.compile(r"cu[A-Z]\w*|cuda[A-Z]\w*|CUDA_?[A-Z]\w*|CU_[A-Z]\w*|CUuuid|(cublas|CUBLAS)\w*"),
        "a name of CUDA's library",
    ),
    (re.compile(r"atomic[A-Z]\w*"), "a function of CUDA"),
    (
        re.compile(
            r"M_(1_|2_|LN|LOG|SQRT)\w*|M_(E|PI(_[24])?)(l|f\w*)?|CHAR_BIT|NDEBUG|FP_[A-Z]\w*|CUDART\w*|NVRTC\w*"
        ),
        "a macro",
    ),
    (
        re.compile(r"U?(INT|LONG|LLONG|CHAR|SCHAR|SHRT|SIZE|PTRDIFF|FLT|DBL|LDBL)\d*_\w+"),
        "a macro of C's limits",
    ),
    (re.compile(r"gg_\w*"), "the beginning of gemmgen's own functions"),
    (re.compile(r"value_\d+|(copy|load)\d+"), "used by the emitted text"),
    (re.compile(r"_[A-Z]\w*|\w*__\w*"), "kept by C++ for compilers"),
)

EMITTED = _words("""
    acc alpha beta tid warp lane elem out old value stage next_stage write_stage vector half
    group group_rows full_group tile_in_group VEC SHARED_BYTES unfused ahead turn GROUP STAGES
    THREADS shared_memory blocks error stream tiles own_tile own_part own_group group_tile
    other_part other_group is_last is_last_of_group part_tile part_sum part_at PART_VEC PARTS GROUPS
    workspace arrived along acc_shared acc_values slot acc_PAD valid shared_memory_32 target source
    first stop full phase STAGE_BYTES device ready multiprocessors empty CONSUMERS
    CONSUMER consumer turn_phase steps first_tile first_warp
    shared_memory_128 shared_memory_256 shared_memory_512 shared_memory_1024
    landed in_squares tile_on_curve config cluster rank CLUSTER together clusters
    part PROMOTE plane SPLIT tile_at WARPGROUP
    CONSUMER_GROUPS CONSUMER_BARRIER PRODUCER_REGISTERS CONSUMER_REGISTERS
    counted_last counted_last_of_group
    """) | {attribute.variable for attribute in ATTRIBUTES.values()}
"""Names that the emitted text uses whatever the schedule; a test reads them off emitted texts."""


@lru_cache(4096)
def language_word(name: str) -> str | None:
    """Why no name may be ``name``, whatever the schedule; None if it may."""
    if name in CPP:
        return "a word of C++"
    if name in _CUDA:
        return "a word of CUDA or C"
    for pattern, what in _PATTERNS:
        if pattern.fullmatch(name):
            return what
    if name in FUNCTIONS:
        return "a function of the epilogue"
    if name in _MATH or (name[-1:] in "fl" and name[:-1] in _MATH):
        return "a function of C"
    if name in TYPES:
        return "a type of C"
    if name in MACROS:
        return "a macro"
    return "used by the emitted text" if name in EMITTED else None


def global_word(name: str) -> str | None:
    """Why no kernel may be ``name``: it would collide with a declaration of C at file scope."""
    return language_word(name) or ("known to C compilers" if is_global(name) else None)

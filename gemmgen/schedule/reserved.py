"""Names that a schedule may not choose: words of C++ and CUDA, macros, the emitted text's own."""

from __future__ import annotations

import re

from gemmgen.schedule.model import Access, Gemm
from gemmgen.schedule.roles import batch_extent, batches, extent, ld_name, roles, strides
from gemmgen.schedule.words import FUNCTIONS

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
LETTER = re.compile(r"[a-z][a-z0-9_]{0,15}")


def _words(*lines: str) -> frozenset[str]:
    return frozenset(word for line in lines for word in line.split())


_CPP = _words("""
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
    threadIdx blockIdx blockDim gridDim warpSize dim3 half half2 nv_bfloat16 nv_bfloat162 size_t
    ptrdiff_t nullptr_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t intptr_t
    uintptr_t uchar ushort uint ulong clock clock64 printf malloc free memcpy memset memmove assert
    abort exit trap atomicAdd atomicSub atomicExch atomicMin atomicMax atomicCAS surfaceReference
    textureReference dim_t linux unix NULL NAN INFINITY EOF BUFSIZ RAND_MAX HUGE_VAL HUGE_VALF
    errno stdin stdout stderr signgam
    """)
_MATH = _words("""
    abs labs llabs fabs min max fmin fmax fma exp exp2 exp10 expm1 log log2 log10 log1p logb sqrt
    rsqrt cbrt rcbrt pow sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh sincos
    sinpi cospi erf erfc erfinv erfcinv erfcx normcdf normcdfinv tgamma lgamma ceil floor trunc rint
    nearbyint round lround llround lrint llrint fmod remainder remquo fdim hypot rhypot ldexp frexp
    scalbn scalbln modf copysign nan nextafter ilogb isfinite isinf isnan signbit umin umax
    """)
_GLOBAL = _words("""
    gamma j0 j1 jn y0 y1 yn norm norm3d norm4d ullmin div ldiv index rindex select read write open
    close wait signal time sleep random rand srand system link pipe dup access connect bind listen
    """)
_PATTERNS = (
    (re.compile(r"u?(char|short|int|long|longlong|float|double|half)[1-4](_\w+)?"), "a CUDA type"),
    (
        re.compile(r"cu[A-Z]\w*|cuda[A-Z]\w*|CUDA_?[A-Z]\w*|CU_[A-Z]\w*"),
        "a name of CUDA's library",
    ),
    (re.compile(r"M_[A-Z0-9_]+|CHAR_BIT|NDEBUG|FP_[A-Z]+|CUDART_\w+|NVRTC\w*"), "a macro"),
    (
        re.compile(r"U?(INT|LONG|LLONG|CHAR|SCHAR|SHRT|SIZE|PTRDIFF|FLT|DBL|LDBL)\d*_\w+"),
        "a macro of C's limits",
    ),
    (re.compile(r"gg_\w*"), "the beginning of gemmgen's own functions"),
    (re.compile(r"_[A-Z]\w*|\w*__\w*"), "kept by C++ for compilers"),
)

EMITTED = _words("""
    acc alpha beta tid warp lane e out old value stage fill piece half band band_rows height within
    unfused ahead turn GROUP STAGES THREADS shared_memory blocks error stream tiles own_tile
    own_part own_group group_tile other_part other_group is_last is_last_of_group part_tile part_sum
    part_at PARTS GROUPS workspace arrived along
    acc_shared sums spot shared_memory_32
    """)
"""Names that the emitted text uses whatever the schedule."""

BATCHED = ("tile", "matrix_tiles")
"""Names that the emitted text of a kernel with batches uses besides."""

STEMS = ("_shared", "_frag", "_next", "_raw", "_piece", "_stage", "_fill", "_ahead", "_STAGES")
"""The emitted text names a tensor's copies by these: ``A_shared``."""

CONSTANTS = {
    "B": "block tile",
    "T": "micro-tile",
    "W": "warp tile",
    "P": "piece",
    "L": "lanes",
    "I": "extent of an instruction",
    "F": "number of fragments",
}
"""First letters of the sizes that the emitted text names by role: ``BM``, ``TN``."""

VARIABLES = (
    *("tile", "blocks", "thread", "reg", "step", "pair", "end", "next", "round"),
    *("steps", "chunk", "start", "stop"),
    *("warp", "slice", "frag"),
)
"""First words of the emitted text's variables along a letter: ``tile_k``."""


def language_word(name: str) -> str | None:
    """Why no name may be ``name``, whatever the schedule; None where it may."""
    if name in _CPP:
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
    return "used by the emitted text" if name in EMITTED else None


def taken(gemm: Gemm) -> dict[str, str]:
    """The names that a checked ``gemm`` line takes, each with what it stands for."""
    accesses = (gemm.c, gemm.a, gemm.b)
    names = {access.tensor: "a tensor" for access in accesses}
    every = ", ".join(access.tensor for access in accesses)
    for letter in (*roles(gemm), *batches(gemm)):
        names[letter] = f"a letter of {every}"
    for letter in roles(gemm):
        names[extent(letter)] = f"the extent of the letter {letter}"
    names |= _batch_names(gemm)
    for letter in roles(gemm):  # what follows from a letter may be the name of another one
        capital = extent(letter)
        names |= {f"{first}_{letter}": f"a variable along {letter}" for first in VARIABLES}
        for first, what in CONSTANTS.items():
            names[first + capital] = f"the emitted text's name for the {what} along {letter}"
    for access in accesses:
        names |= tensor_names(access.tensor)
        for letter in roles(gemm):
            first = f"the emitted text's name for a place in a tile of {access.tensor}"
            names[f"{access.tensor}_{letter}"] = first
            names[f"{access.tensor}_next_{letter}"] = first
    return names


def _batch_names(gemm: Gemm) -> dict[str, str]:
    """The names that follow from a ``gemm`` line with batches."""
    if not batches(gemm):
        return {}
    names: dict[str, str] = dict.fromkeys(BATCHED, "used by the emitted text")
    for letter in batches(gemm):
        names[batch_extent(letter)] = f"the extent of the letter {letter}"
    for access in (gemm.c, gemm.a, gemm.b):
        names |= stride_names(access, gemm)
    return names


def stride_names(access: Access, gemm: Gemm) -> dict[str, str]:
    """A tensor's strides along batch letters."""
    return {
        name: f"the stride of {access.tensor} along {letter}"
        for letter, name in strides(access, gemm).items()
    }


def tensor_names(tensor: str) -> dict[str, str]:
    """The names that follow from a tensor's."""
    own = {ld_name(tensor): f"the leading dimension of {tensor}"}
    return own | {tensor + stem: f"the emitted text's name for part of {tensor}" for stem in STEMS}


def global_word(name: str) -> str | None:
    """Why no kernel may be ``name``: functions of C stand beside it in the file."""
    return "a function of C" if name in _GLOBAL else language_word(name)


def kernel_names(kernel: str) -> dict[str, str]:
    """The names that a kernel takes."""
    return {kernel: "the kernel", f"launch_{kernel}": "the kernel's launcher"}

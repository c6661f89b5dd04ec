"""Hostile words, and the places of a schedule where users choose words."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gemmgen.base.errors import ScheduleError
from gemmgen.base.source import Source
from gemmgen.emit.ctext import C_NAMES
from gemmgen.ir.cnames import GLOBALS, MACROS, TYPES
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.sim.ptx import translated

USUAL = {
    **{"row": "rq", "col": "cq", "term": "kq", "batch": "bq"},
    **{"C": "Cq", "A": "Aq", "B": "Bq", "kernel": "kernel_q"},
    **{"vector": "vq", "matrix": "mq", "scalar": "sq"},
}
"""A place, and a word that occurs there and nowhere else."""

LETTERS = ("row", "col", "term", "batch")
"""Places whose words are in small letters."""

_LINES = "kernel {kernel}\ngemm {C}[{row}, {col}] = {A}[{row}, {term}] * {B}[{term}, {col}]\n"
_BATCHED = (
    "kernel {kernel}\n"
    "gemm {C}[{batch}, {row}, {col}] = {A}[{batch}, {row}, {term}] * {B}[{term}, {col}]\n"
)
_EPILOGUE = "fuse_epilogue relu({scalar} * acc + {vector}[{col}] + {matrix}[{row}, {col}])\n"
_BLOCKS = "tile {row}=64 {col}=64 {term}=16\ncache_shared {A}[{term}, {row}] {B}\n"
_THREADS = "register_block {row}=8 {col}=4\nvectorize {A} {B} {C} width=4\n"
TEMPLATES = {
    "staged": _BATCHED + _BLOCKS + _THREADS + "double_buffer {A} {B} stages=3\n" + _EPILOGUE,
    "mixed": _LINES
    + _BLOCKS
    + _THREADS
    + "double_buffer {A} stages=3\ndouble_buffer {B} stages=2\nraster group=4\n"
    + "split_k parts=4 groups=2\n",
    "copied": _LINES
    + "tile {row}=64 {col}=64 {term}=16\ncache_shared {A} {B}\nwarp_tile {row}=32 {col}=32\n"
    + "register_block {row}=8 {col}=4\nvectorize {B} {C} width=4\n"
    + "double_buffer {A} {B} stages=3\nasync_copy {A} {B} via=cp_async\n"
    + "residue {term}=first\n",
    "lanes": _LINES + "tile {row}=4 {col}=2 {term}=128\nsplit_k within=warp\n" + _EPILOGUE,
    "cores": _LINES
    + "dtype {A}=f16 {B}=f16 {C}=f32 acc=f32\n"
    + "tile {row}=64 {col}=64 {term}=16\ncache_shared {A} {B}\ntensor_core via=wmma\n"
    + _EPILOGUE,
    "matrices": _LINES
    + "dtype {A}=f16 {B}=f16 {C}=f32 acc=f32\n"
    + "tile {row}=64 {col}=64 {term}=32\ncache_shared {A} {B} {C}\ntensor_core via=mma\n"
    + "swizzle {A} {B}\ndouble_buffer {A} {B}\ndouble_buffer {A}.register {B}.register\n"
    + _EPILOGUE,
    "planes": "kernel {kernel}\n"
    "gemm {C}[{row}, {col}] = {A}[{row}, {term}] * {B}[{col}, {term}]\n"
    "target sm_90a\ntile {row}=128 {col}=128 {term}=64\ncache_shared {A} {B}\n"
    "warp_tile {row}=64 {col}=128\ndecompose into=bf16\ntensor_core via=wgmma promote=64\n"
    "swizzle {A} {B}\ndouble_buffer {A} {B} stages=2\nasync_copy {A} {B} via=tma\npersistent\n"
    "warp_specialize producers=1 consumers=2\ncluster {row}=2\n" + _EPILOGUE,
    "swapped": _LINES
    + "dtype {A}=f16 {B}=f16 {C}=f16\ntarget sm_90a\n"
    + "tile {row}=48 {col}=128 {term}=32\ncache_shared {A} {B} {C}\nwarp_tile {row}=48 {col}=64\n"
    + "tensor_core via=wgmma rows={col}\nswizzle {A} {B} {C}\ndouble_buffer {A} {B}\n"
    + "async_copy {A} {B} {C} via=tma\nwarp_specialize producers=1\n"
    + _EPILOGUE,
    "parts": _LINES
    + "target sm_90a\ntile {row}=64 {col}=64 {term}=16\ncache_shared {A} {B}\n"
    + "register_block {row}=8 {col}=4\ndouble_buffer {A} {B}\nasync_copy {A} {B} via=tma\n"
    + "split_k parts=4 groups=2\nwarp_specialize producers=1\n",
}
"""Schedules that together use every mechanism which names things."""

_WORD = re.compile(r"[A-Za-z_]\w*")
_COMMENT = re.compile(r'//[^\n]*|"[^"\n]*"')


def schedule_text(template: str, place: str = "", word: str = "") -> str:
    """The schedule with ``word`` at ``place``, its usual words elsewhere."""
    return TEMPLATES[template].format(**(USUAL | {place: word} if place else USUAL))


def emitted(template: str, place: str, word: str) -> Emitted | None:
    """The kernel, or None where the schedule is refused; any other outcome is raised."""
    try:
        return compile_source(Source(schedule_text(template, place, word)))
    except ScheduleError as error:
        assert all(mistake.span is not None and mistake.hint for mistake in error.mistakes)
        return None


def identifiers(text: str) -> set[str]:
    """The identifiers of a text's code."""
    return set(_WORD.findall(_COMMENT.sub("", text)))


def made_by_lowering(template: str) -> set[str]:
    """Identifiers of the template's text that follow from no word of it, and what the others are
    made of."""
    text = compile_source(Source(schedule_text(template))).text
    found: set[str] = {*C_NAMES.values(), *identifiers(text)}
    own = sorted(USUAL.values(), key=len, reverse=True)
    parts: set[str] = set()
    for name in found:
        rest = name
        for word in own:
            rest = re.sub(rf"(^|_)({word}|{word.upper()})(?=_|$)", r"\1", rest)
            rest = rest.removesuffix(word.upper()).removesuffix(f"ld{word.lower()}")
        parts |= {rest.strip("_"), *rest.split("_")}
    return {name for name in found | parts if _WORD.fullmatch(name)}


def hostile(template: str, place: str) -> list[str]:
    """Words that may be taken at the place: those that the template's text has taken, words that
    become one with a part of another, and words that are taken everywhere.

    Letters are small, and their names in capitals are in the text.  A tensor's name is in lower
    case in ``lda`` alone.
    """
    made = made_by_lowering(template)
    plain = set("abcdefghijklmnopqrstuvwxyz") | {"int", "class", "t", "std", "value_2", "bq", "rq"}
    known = made | plain | TYPES | {f"{USUAL['vector']}_frag", "vq_frag_2"}
    known |= {f"{USUAL['A']}_{part}" for name in made for part in _after_a_word(name)}
    known |= {word.upper() for word in known if len(word) == 1}
    known |= {name.removeprefix("ld").upper() for name in made if name.startswith("ld")}
    if place in LETTERS:
        known = {word.lower() for word in known}
    return sorted(word for word in known if len(word) <= 30)


def _after_a_word(name: str) -> Iterator[str]:
    """What the name has after a word of the template's and ``_``: all of it, and its beginnings.

    After the same word these are names of the text; after another they begin one.
    """
    for word in USUAL.values():
        first, _, rest = name.partition(f"{word}_")
        if not first:
            parts = rest.split("_")
            yield from ("_".join(parts[:count]) for count in range(1, len(parts) + 1) if rest)


def known_to_c() -> list[str]:
    """What is in the headers of C and CUDA."""
    return sorted(GLOBALS | MACROS | TYPES | {"atomicInc", "GgArgument", "GG_WMMA", "cudaFree"})


def unit(kernels: Iterator[tuple[int, Emitted]], launcher: bool) -> str:
    """One C++ text of many kernels, each in its own namespace."""
    parts = ['#include "host.h"']
    for number, kernel in kernels:
        functions, begin, rest = kernel.text.partition("// ---- kernel ----")
        text = translated(functions, 1) + begin + rest.replace('extern "C" ', "")
        text = re.sub(r"#pragma unroll.*", "", text)
        if launcher:
            text = re.sub(r"(\w+)<<<(.*?)>>>\(", r"gg_configure(\1, \2)(", text, flags=re.DOTALL)
        else:
            text = text.split("// ---- end of kernel ----")[0]
        parts.append(f'namespace gg_{number} {{\n#line 1 "{number}"\n{text}\n}}')
    return "\n".join(parts) + "\n"

"""``kernel``, ``target``, ``assume``, ``require``: one check each."""

from __future__ import annotations

import re

from gemmgen.base.errors import Refusal
from gemmgen.base.source import Source, Span, shown
from gemmgen.ir.identifiers import global_word
from gemmgen.ir.parameters import ld_name
from gemmgen.ir.target import TARGETS
from gemmgen.schedule.gemm_line import Scope, check_name
from gemmgen.schedule.model import Assume, Gemm, Require
from gemmgen.schedule.numbers import integer
from gemmgen.schedule.raw import RawAssume, RawRequire, Word
from gemmgen.schedule.reserved import kernel_names, taken
from gemmgen.schedule.roles import batches, extents, roles, tensors
from gemmgen.schedule.words import QUANTITIES, UNITS, close


def first_given(source: Source, span: Span, statement: Span | None = None) -> tuple[str, ...]:
    """The note of a repeated statement: the position of the first, and its text."""
    line, column = source.position(span.start)
    whole = statement or span
    text = shown(" ".join(source.text[whole.start : min(whole.end, whole.start + 200)].split()))
    return (f"first given on line {line}, column {column}: {text}",)


def check_kernel(word: Word, scope: Scope) -> str:
    """The kernel's name."""
    check_name(word, "kernel")
    why = global_word(word.text)
    names = taken(scope.gemm) if scope.sure else {}
    for name in kernel_names(word.text):
        why = why or names.get(name)
    if why:
        raise Refusal(
            f"`{shown(word.text)}` can't be a kernel's name: it is {why}",
            at=word.span,
            hint=f"any other name will do, such as `{word.text}_kernel`",
        )
    return word.text


def check_default_kernel(name: str, scope: Scope) -> None:
    """Refuses a tensor that has the default name of the kernel."""
    for access in (scope.gemm.c, scope.gemm.a, scope.gemm.b):
        if scope.sure and access.tensor in kernel_names(name):
            raise Refusal(
                f"the tensor {access.tensor} has the name of {kernel_names(name)[access.tensor]}",
                at=access.span,
                hint="rename the tensor, or name the kernel: `kernel my_gemm`",
            )


def check_target(word: Word) -> str:
    """The architecture."""
    if word.text in TARGETS:
        return word.text
    known = ", ".join(TARGETS)
    near = "sm_" + re.sub(r"^(sm|compute|cc)?_?", "", word.text.lower())
    hint = f"did you mean {near}? " if near in TARGETS else ""
    raise Refusal(
        f"unknown target `{shown(word.text)}`", at=word.span, hint=f"{hint}the targets are {known}"
    )


def check_assume(raw: RawAssume, scope: Scope) -> Assume:
    """``assume N % 4 == 0`` or ``assume lda == K``."""
    names = _assumable(scope.gemm)
    _check_assumed(raw.name, names, scope)
    if raw.divisor is not None:
        divisor = integer(raw.divisor, "the divisor", 1, 1 << 16)
        if raw.other.text != "0":
            raise Refusal(
                f"a remainder of {shown(raw.other.text)} removes no guard",
                at=raw.other.span,
                hint=f"assume {raw.name.text} % {divisor} == 0",
            )
        return Assume(raw.name.text, divisor, None, raw.span)
    if raw.other.text[:1] in "+-.0123456789":
        raise Refusal(
            f"the size of {raw.name.text} is no part of a schedule",
            at=raw.other.span,
            hint="a fixed shape is given to the command: --shape MxNxK",
        )
    _check_assumed(raw.other, names, scope)
    first, second = (raw.name.text, raw.other.text)
    if scope.sure:
        # Leading dimensions before extents, so that `lda == K` and `K == lda` are one text.
        order = [*(n for n in names if n not in _extents(scope.gemm)), *_extents(scope.gemm)]
        first, second = sorted((first, second), key=order.index)
        if second not in _extents(scope.gemm):
            raise Refusal(
                f"{first} == {second} compares two leading dimensions",
                at=raw.span,
                hint=f"compare each with an extent: assume {first} == {_extents(scope.gemm)[-1]}",
            )
    if first == second:
        raise Refusal(f"{first} == {first} says nothing", at=raw.span, hint="leave the line out")
    return Assume(first, None, second, raw.span)


def _extents(gemm: Gemm) -> tuple[str, ...]:
    counts = extents(gemm)
    return tuple(counts[letter] for letter in roles(gemm))


def _assumable(gemm: Gemm) -> tuple[str, ...]:
    """The names that an ``assume`` may use, in the order of a canonical text."""
    return (*_extents(gemm), *(ld_name(tensor) for tensor in tensors(gemm).values()))


def assume_key(assume: Assume, gemm: Gemm) -> tuple[int, bool, str]:
    """The position of an ``assume`` in a canonical text."""
    return _assumable(gemm).index(assume.name), assume.divisor is None, assume.equals or ""


def _check_assumed(word: Word, names: tuple[str, ...], scope: Scope) -> None:
    if scope.sure and word.text not in names:
        counts = extents(scope.gemm)
        for letter in batches(scope.gemm):
            if word.text == counts[letter]:
                raise Refusal(
                    f"{word.text} counts the matrices along {letter}: no guard depends on it",
                    at=word.span,
                    hint="leave the line out",
                )
        near = close(word.text, names)
        raise Refusal(
            f"`{shown(word.text)}` is neither an extent nor a leading dimension",
            at=word.span,
            hint=(f"did you mean {near}? " if near else "") + f"there are {', '.join(names)}",
        )


def check_require(raw: RawRequire) -> Require:
    """``require shared <= 48KiB``."""
    name, op = raw.quantity.text, raw.op.text
    if name not in QUANTITIES:
        near = close(name, QUANTITIES)
        raise Refusal(
            f"unknown quantity `{shown(name)}`",
            at=raw.quantity.span,
            hint=(f"did you mean {near}? " if near else "")
            + f"require takes {', '.join(QUANTITIES)}",
        )
    if op not in {"<=", "=="}:
        raise Refusal(
            f"require takes <= or ==, not {op}",
            at=raw.op.span,
            hint=f"require {name} <= {shown(raw.limit.text)}",
        )
    limit, unit = raw.limit, raw.unit
    digits = limit.text.rstrip("BKMGTkmgibytes")
    if unit is None and digits and digits != limit.text:
        middle = limit.span.start + len(digits)
        unit = Word(limit.text[len(digits) :], Span(middle, limit.span.end))
        limit = Word(digits, Span(limit.span.start, middle))
    factor = _unit(name, unit) if unit else 1
    return Require(name, op, integer(limit, f"the limit of {name}", 0, 1 << 30) * factor, raw.span)


def _unit(quantity: str, unit: Word) -> int:
    if quantity != "shared":
        raise Refusal(
            f"{quantity} are counted, they have no unit", at=unit.span, hint="give the number alone"
        )
    if unit.text not in UNITS:
        raise Refusal(
            f"unknown unit `{shown(unit.text)}`",
            at=unit.span,
            hint="B, or KiB (1024 bytes): require shared <= 48KiB",
        )
    return UNITS[unit.text]

"""Checks ``assume``: a fact about extents and leading dimensions."""

from __future__ import annotations

from gemmgen.base.errors import Refusal
from gemmgen.base.source import shown
from gemmgen.ir.parameters import ld_name
from gemmgen.schedule.gemm_line import GemmScope
from gemmgen.schedule.model import Assume, Gemm
from gemmgen.schedule.numbers import integer
from gemmgen.schedule.raw import RawAssume, Word
from gemmgen.schedule.roles import batches, extents, roles, tensors
from gemmgen.schedule.words import close


def check_assume(raw: RawAssume, scope: GemmScope) -> Assume:
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
            f"the size of {raw.name.text} is not part of a schedule",
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
        raise Refusal(f"{first} == {first} is always true", at=raw.span, hint="leave the line out")
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


def _check_assumed(word: Word, names: tuple[str, ...], scope: GemmScope) -> None:
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

"""Checks ``require same_bits over m``: letters whose extents the bits of an element are not to
depend on."""

from __future__ import annotations

from gemmgen.base.errors import Refusal
from gemmgen.base.source import shown
from gemmgen.schedule.gemm_line import GemmScope
from gemmgen.schedule.model import SameBits
from gemmgen.schedule.raw import RawSameBits, Word
from gemmgen.schedule.roles import batches, roles
from gemmgen.schedule.words import QUANTITIES, SAME_BITS, close


def check_same_bits_line(raw: RawSameBits, scope: GemmScope) -> SameBits:
    """``require same_bits over m n``, its letters in the order of roles."""
    _check_words(raw)
    m, n, k = roles(scope.gemm)
    known = (m, n, *batches(scope.gemm))
    seen: set[str] = set()
    for word in raw.letters:
        if scope.sure:
            _check_letter(word, known, k)
        if word.text in seen:
            raise Refusal(f"{word.text} is named twice", at=word.span, hint="name it once")
        seen.add(word.text)
    letters = tuple(x for x in known if x in seen) if scope.sure else ()
    return SameBits(letters, raw.span)


def _check_words(raw: RawSameBits) -> None:
    name = raw.what.text
    if name in QUANTITIES:
        raise Refusal(
            f"require {name} takes <= or ==, not {shown(raw.over.text)}",
            at=raw.over.span,
            hint=f"require {name} <= 256",
        )
    if name != SAME_BITS:
        near = close(name, (*QUANTITIES, SAME_BITS))
        raise Refusal(
            f"unknown requirement `{shown(name)}`",
            at=raw.what.span,
            hint=f"did you mean {near}?" if near else f"require {SAME_BITS} over m",
        )
    if raw.over.text != "over":
        raise Refusal(
            f"require {SAME_BITS} takes `over` and letters, not `{shown(raw.over.text)}`",
            at=raw.over.span,
            hint=f"require {SAME_BITS} over m",
        )


def _check_letter(word: Word, known: tuple[str, ...], k: str) -> None:
    if word.text == k:
        raise Refusal(
            f"{k} is summed over, so the bits of an element depend on its extent",
            at=word.span,
            hint=f"require {SAME_BITS} over {known[0]}",
        )
    if word.text not in known:
        near = close(word.text, known)
        raise Refusal(
            f"`{shown(word.text)}` is not a letter of the output",
            at=word.span,
            hint=(f"did you mean {near}? " if near else "") + f"there are {', '.join(known)}",
        )

"""The scales of an operand's blocks: ``(A[m, k] * SA[k/128, m])``."""

from __future__ import annotations

from gemmgen.base.errors import Refusal
from gemmgen.base.source import indexed, listed, shown
from gemmgen.ir.blocked_letters import blocked
from gemmgen.schedule.model import Access, Gemm, Scale
from gemmgen.schedule.numbers import integer
from gemmgen.schedule.raw import RawScale, Word
from gemmgen.schedule.roles import batches, roles

LARGEST = 1 << 16
"""The longest block of a scale."""


def checked_scales(raws: tuple[RawScale, ...], gemm: Gemm) -> tuple[Scale, ...]:
    """The scales of a ``gemm`` line, in the order a, b; raises ``Refusal`` for the first that is
    wrong."""
    found = tuple(_scale(raw, gemm) for raw in raws)
    names = [access.tensor for access in (gemm.c, gemm.a, gemm.b)]
    for raw in raws:
        if raw.tensor.text in names:
            raise Refusal(
                f"two tensors are called {shown(raw.tensor.text)}",
                at=raw.tensor.span,
                hint=f"the scales of {raw.of.text} have a name of their own, such as "
                f"`S{raw.of.text}`",
            )
        names.append(raw.tensor.text)
    return found


def _scale(raw: RawScale, gemm: Gemm) -> Scale:
    access = next(x for x in (gemm.a, gemm.b) if x.tensor == raw.of.text)
    example = _example(raw, access, gemm)
    if batches(gemm):
        raise Refusal(
            "scales of a product with batches are not in this version",
            at=raw.span,
            notes=(f"{listed(batches(gemm))} numbers the matrices",),
            hint=f"one product of matrices: `{example}`",
        )
    letters = [letter.text for letter, _ in raw.indices]
    for letter, _ in raw.indices:
        if letter.text not in access.indices:
            raise Refusal(
                f"`{shown(letter.text)}` is not a letter of {access.tensor}",
                at=letter.span,
                notes=(
                    f"{raw.tensor.text} scales blocks of "
                    f"{indexed(access.tensor, access.indices)}",
                ),
                hint=f"write it like `{example}`",
            )
        if letters.count(letter.text) > 1:
            raise Refusal(
                f"{letter.text} occurs twice in {shown(raw.tensor.text)}",
                at=letter.span,
                hint=f"write it like `{example}`",
            )
    missing = [letter for letter in access.indices if letter not in letters]
    if missing:
        raise Refusal(
            f"{shown(raw.tensor.text)} has no index along {listed(missing)}",
            at=raw.span,
            notes=_uniform(raw, missing, gemm),
            hint=f"write it like `{example}`",
        )
    indices = tuple(blocked(letter.text, _size(block)) for letter, block in raw.indices)
    k = roles(gemm)[2]
    if k in indices:
        raise Refusal(
            f"{shown(raw.tensor.text)} has a scale for each element along {k}",
            at=raw.span,
            notes=("tensor cores add up products before anything can scale them",),
            hint=f"write it like `{example}`",
        )
    return Scale(raw.tensor.text, indices, raw.of.text, raw.span)


def _uniform(raw: RawScale, missing: list[str], gemm: Gemm) -> tuple[str, ...]:
    """What scales without an index along k are: a factor of the sum."""
    m, n, k = roles(gemm)
    if missing != [k]:
        return ()
    (free,) = (x for x in (m, n) if x in [letter.text for letter, _ in raw.indices])
    return (
        f"a scale that is the same along {k} is a factor of the sum: "
        f"fuse_epilogue acc * {raw.tensor.text}[{free}]",
    )


def _size(word: Word | None) -> int:
    """The elements of a block."""
    if word is None:
        return 1
    return integer(word, "the length of a block", 1, LARGEST)


def _example(raw: RawScale, access: Access, gemm: Gemm) -> str:
    """The usual form: blocks of 128 along k for each row of a, or for 128 rows of b."""
    m, n, k = roles(gemm)
    if access.tensor == gemm.a.tensor:
        return f"({indexed(access.tensor, access.indices)} * S{access.tensor}[{k}/128, {m}])"
    return f"({indexed(access.tensor, access.indices)} * S{access.tensor}[{n}/128, {k}/128])"

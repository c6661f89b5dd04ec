"""What follows the product: ``bias`` and ``epilogue`` as a text of the language and its values."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import cast

from gemmgen.base.errors import CallError
from gemmgen.base.record import record
from gemmgen.base.source import Source, shown, value_shown
from gemmgen.calling.scalars import DEFAULTS
from gemmgen.ir.expr import Element, Var, walk
from gemmgen.language import parse_schedule
from gemmgen.torch.schema import Signature

ADDED = "acc + bias[n]"
"""The epilogue of a ``bias`` alone."""
EXAMPLE = '("relu(scale * acc) + r[m, n]", {"scale": 2.0, "r": r})'
Values = tuple[tuple[str, object], ...]
"""Names and what they stand for: arrays and numbers."""


@record
class Reads:
    """What an epilogue reads: ``tensors`` with their letters, ``numbers`` without a default, and
    ``defaulted`` ones (alpha, beta).

    ``used``: letters whose dimensions can't be merged with others.  ``output``: ``always`` if it
    reads C for any beta, ``scaled`` if C is read as ``beta * C``, else ``never``.
    """

    tensors: tuple[tuple[str, tuple[str, ...]], ...]
    numbers: tuple[str, ...]
    defaulted: tuple[str, ...]
    used: frozenset[str]
    output: str


def given(bias: object, epilogue: object) -> tuple[str | None, Values]:
    """The text and the values of a call's ``bias=`` and ``epilogue=``; ``CallError`` for others."""
    values: dict[str, object] = {}
    text: object = epilogue
    if isinstance(epilogue, tuple):
        pair = cast(tuple[object, ...], epilogue)
        if len(pair) != 2 or not isinstance(pair[1], Mapping):
            raise CallError(f"epilogue= is a text, or a text and its values: {EXAMPLE}")
        text = pair[0]
        for name, value in cast(Mapping[object, object], pair[1]).items():
            if not isinstance(name, str) or not name.isidentifier():
                raise CallError(f"epilogue= has the name {value_shown(name)}: write {EXAMPLE}")
            values[name] = value
    if text is not None and not isinstance(text, str):
        what = type(text).__name__
        raise CallError(f"epilogue= is a {what}; it is a text, or a text and its values: {EXAMPLE}")
    if text is not None:
        text = _one_line(text)
    if bias is not None:
        if "bias" in values:
            raise CallError("bias is given twice: as bias=, and in epilogue=")
        values["bias"] = bias
    return (ADDED if bias is not None else None) if text is None else text, tuple(values.items())


def _one_line(text: str) -> str:
    """``text``, unless it could add a statement to a schedule."""
    if "#" in text or not text.isprintable() or not text.strip():  # no line break is printable
        raise CallError(f"epilogue={shown(text)} is not one line of an expression without comments")
    return text.strip()


@lru_cache(512)
def reads(text: str | None, batches: int) -> Reads:
    """What ``text`` reads, for a result with this many batch dimensions; ``ScheduleError`` for its
    mistakes."""
    if text is None:
        return Reads((), (), ("alpha", "beta"), frozenset(), "scaled")
    outer = tuple(f"b{at + 1}" for at in range(min(batches, 4)))
    c, a = (", ".join((*outer, *inner)) for inner in (("m", "n"), ("m", "k")))
    gemm = f"gemm C[{c}] = A[{a}] * B[k, n]\n"
    found = Signature.of(parse_schedule(Source(f"{gemm}fuse_epilogue {text}\n", "<epilogue>")))
    letters: set[str] = set()
    for part in walk(found.problem.epilogue):
        match part:
            case Var(name):
                letters.add(name)
            case Element(_, indices):
                letters |= {index.name for index in indices if isinstance(index, Var)}
            case _:
                pass
    names = (x for x in found.tensors if x.name not in ("A", "B", "C"))
    always = any(x.name == "C" for x in found.tensors)
    return Reads(
        tuple((x.name, x.letters) for x in names),
        found.numbers,
        found.defaulted,
        frozenset(letters & {*outer, "m"}),
        "always" if always else "scaled" if found.old else "never",
    )


def check_given(text: str | None, read: Reads, names: tuple[str, ...]) -> None:
    """Raises ``CallError`` unless ``names`` are all that the epilogue reads, and no others."""
    tensors = [name for name, _ in read.tensors]
    known = {*tensors, *read.numbers, *read.defaulted}
    for name in names:
        if name not in known:
            written = f"{name}[n]" if name == "bias" else name
            raise CallError(f"{name} is given, and the epilogue {text} has no {written}")
    for name in (*tensors, *read.numbers):
        if name not in names:
            how = "pass bias=" if name == "bias" else f'pass epilogue=(text, {{"{name}": ...}})'
            raise CallError(f"the epilogue {text} reads {name}, which is not given: {how}")


def check_old_values(text: str | None, read: Reads, values: Values, has_output: bool) -> None:
    """Raises ``CallError`` if the epilogue reads C, and no ``out`` has its values."""
    beta = dict(values).get("beta", DEFAULTS["beta"])
    scaled = read.output == "scaled" and not (isinstance(beta, int | float) and beta == 0)
    if not has_output and (scaled or read.output == "always"):
        raise CallError(f"the epilogue {text} reads C, the old result: pass it as out=")

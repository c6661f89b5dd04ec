"""The estimate of a suggestion as a variant whose tiles TMA copies.

The model's constants were not fitted to times of such kernels, so the variant is reported but not
chosen: ``gemmgen tune`` has it among its candidates and measures it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gemmgen.base.errors import ScheduleError
from gemmgen.base.source import Source
from gemmgen.explore.cost import estimate, launched
from gemmgen.explore.suggest.acceptance import accepts
from gemmgen.explore.tune.footprint import block_sizes
from gemmgen.ir.target import SINCE, has
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.schedule.formatting import format_schedule

if TYPE_CHECKING:
    from gemmgen.explore.suggest.choose import Suggestion

DROPPED = ("pad", "residue", "target")
"""Statements that do not go with TMA, or that others replace."""


def tma_reasons(s: Suggestion) -> Iterator[str]:
    """A sentence, if the suggestion compiles with ``async_copy via=tma``."""
    is_asynchronous = any(each.name == "async_copy" for each in s.schedule.directives)
    if not is_asynchronous or not has(s.request.gpu.arch, SINCE["tma"]):
        return
    found = [f"{ratio:.2f} times as long{more}" for more, ratio in _ratios(s)]
    if found:
        yield (
            f"async_copy: with via=tma it is estimated {' and '.join(found)}; not chosen, since "
            "the model was not fitted to such kernels.  `gemmgen tune` with "
            "async_copy via={cp_async, tma} tries both."
        )


def _ratios(s: Suggestion) -> Iterator[tuple[str, float]]:
    """Each variant, in words, and its estimated time relative to the suggestion."""
    own, text = _seconds(s, s.emitted), boxed(format_schedule(s.schedule), s.request.gpu.target)
    for more, added in (("", ""), (" (with a producer)", "warp_specialize producers=1\n")):
        try:
            emitted = compile_source(Source(text + added))
        except ScheduleError:
            continue
        if accepts(emitted, s.request):
            yield more, _seconds(s, emitted) / own


def boxed(text: str, target: str) -> str:
    """The schedule with its tiles copied by TMA, for ``target``."""
    lines = text.splitlines()
    (asynchronous,) = (line.split() for line in lines if line.startswith("async_copy"))
    tiles = [word for word in asynchronous[1:] if "=" not in word]
    found = [f"target {target}"]
    for line in lines:
        word, *rest = line.split()
        if word == "vectorize":
            rest = [x for x in rest if x not in {f"{tile}.global" for tile in tiles}]
            rest = [f"{x}.shared" if x in tiles else x for x in rest]
            found += [" ".join((word, *rest))] if "=" not in rest[0] else []
        elif word == "async_copy":
            found.append(" ".join((word, *tiles, "via=tma")))
        elif word not in DROPPED:
            found.append(line)
    head = next(at for at, line in enumerate(found) if line.startswith("gemm"))
    found.insert(head, found.pop(0))
    return "".join(f"{line}\n" for line in found)


def _seconds(s: Suggestion, emitted: Emitted) -> float:
    sizes = block_sizes(emitted.program, emitted.interface)
    return estimate(launched(sizes, s.request.shape, s.request.gpu), s.request.gpu)

"""GPUs by their names: those that users write, and those that drivers report.

A user's name is taken in any case and with any spaces and hyphens ("h200", "RTX 4090", "H100
PCIe").  A driver's name is "NVIDIA H100 80GB HBM3" for an H100 in an SXM module, "NVIDIA H100 PCIe"
for one on a card.  Names are compared as wholes: one within another is another GPU's (A10 in
A100).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import takewhile
from pathlib import Path

from gemmgen.base.errors import UsageError
from gemmgen.base.record import record
from gemmgen.base.source import value_shown
from gemmgen.gpu.gpus import GPUS, SMS, Gpu, SmTraits, geforce
from gemmgen.schedule.read import printable
from gemmgen.schedule.words import close

ALSO = {
    "H200": ("H200 SXM", "H200 141GB HBM3e"),
    "H100": ("H100 80GB HBM3", "H100 SXM", "H100 SXM5"),
    "A100": ("A100-SXM4-40GB", "A100-SXM-40GB", "A100-PCIE-40GB", "A100-40GB"),
    "A100-80GB": ("A100-SXM4-80GB", "A100-SXM-80GB", "A100 80GB PCIe"),
}
"""More names of a row, in the driver's spelling without the words of ``COMMON``."""
COMMON = ("nvidia", "geforce", "tesla")
"""Words that a name may begin with, and that do not distinguish GPUs."""
CONSUMER = ("geforce", "titan")
FILE = ".toml"


@record
class Reported:
    """What a driver reports of a device; None for what it does not.  ``clock`` in Hz, ``memory`` in
    bytes a second, ``cache`` in bytes."""

    sms: int | None = None
    clock: float | None = None
    memory: float | None = None
    cache: int | None = None


def gpu_named(gpu: object) -> Gpu:
    """The GPU of a name, or of a file of ``gpu_file`` (a path, or a text that ends with
    ``.toml``); a ``Gpu`` is itself.  Raises ``UsageError`` for anything else."""
    if isinstance(gpu, Gpu):
        return gpu
    if isinstance(gpu, Path) or (isinstance(gpu, str) and _is_file(gpu)):
        from gemmgen.gpu.gpu_file import read_gpu

        found = read_gpu(gpu)
        if any(same_gpu(found.name, known) for known in GPUS):  # which has measured results
            return replace(found, name=f"{found.name} ({printable(Path(gpu).name)})")
        return found
    if isinstance(gpu, str) and (found := _rows().get(_plain(gpu))):
        return found
    near = close(gpu, GPUS) if isinstance(gpu, str) else None
    hint = f"did you mean {near}? there are" if near else "there are"
    raise UsageError(
        f"gpu={value_shown(gpu)}: {hint} {', '.join(GPUS)}; or name a {FILE} file with its figures"
    )


def gpu_of(name: str, capability: tuple[int, int], reported: Reported | None = None) -> Gpu:
    """The figures of the device with this name and compute capability.

    Those of the table, if it has the name and as many SMs as the driver reports.  Else those of the
    closest row, of the same architecture if there is one, scaled by SMs and clock, with what the
    driver reports in their place.
    """
    known = reported or Reported()
    arch = "sm_{}{}".format(*capability)
    found = _rows().get(_plain(name))
    if found is not None and found.arch == arch and known.sms in (None, found.sms):
        return found
    return _scaled(_closest(name, arch, known), name, arch, known)


def same_gpu(name: str, other: str) -> bool:
    """Whether two names, of a driver or of the table, are of one GPU."""
    return name == other or _plain(_row_name(name)) == _plain(_row_name(other))


def _row_name(name: str) -> str:
    """The name of the row, if there is one."""
    found = _rows().get(_plain(name))
    return name if found is None else found.name


def _scaled(row: Gpu, name: str, arch: str, known: Reported) -> Gpu:
    """``row`` with the SMs and the clock of another device."""
    sms, clock = known.sms or row.sms, known.clock or row.clock
    more, faster = sms / row.sms, clock / row.clock
    return replace(
        row,
        name=name,
        arch=arch,
        sms=sms,
        clock=clock,
        memory=known.memory or row.memory * more,
        l2=None if row.l2 is None else row.l2 * more * faster,
        cache=known.cache or int(row.cache * more),
        power=row.power * more,
        sm=_sm(name, SMS.get(arch, row.sm)),
    )


def _sm(name: str, sm: SmTraits) -> SmTraits:
    """Tensor cores are slower in GPUs for consumers than in others of their architecture."""
    consumer = any(word in name.lower() for word in CONSUMER)
    return geforce(sm) if consumer else sm


def _closest(name: str, arch: str, known: Reported) -> Gpu:
    """The row with the most in common: the architecture, then the beginning of the name, then the
    number of SMs."""
    here, plain = _number(arch), _plain(name)
    archs = {gpu.arch for gpu in GPUS.values()}
    older = [each for each in archs if _number(each) <= here]
    nearest = max(older, key=_number) if older else min(archs, key=_number)

    def distance(row: tuple[str, Gpu]) -> tuple[int, int]:
        text, gpu = row
        return -_alike(text, plain), abs(gpu.sms - (known.sms or gpu.sms))

    rows = [(text, gpu) for text, gpu in _rows().items() if gpu.arch == nearest]
    return min(rows, key=distance)[1]


def _alike(one: str, other: str) -> int:
    """Characters with which both names begin."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


@cache
def _rows() -> dict[str, Gpu]:
    """The rows by all of their names."""
    return {_plain(name): gpu for gpu in GPUS.values() for name in _names(gpu)}


def _names(gpu: Gpu) -> Iterator[str]:
    yield gpu.name
    yield from ALSO.get(gpu.name, ())


def _plain(name: str) -> str:
    """A name in small letters, without spaces, hyphens and the words of ``COMMON``."""
    words = re.split(r"[\s_-]+", name.strip().lower())
    while len(words) > 1 and words[0] in COMMON:
        words = words[1:]
    return "".join(words)


def _is_file(name: str) -> bool:
    return name.lower().endswith(FILE) or "/" in name or "\\" in name


def _number(arch: str) -> int:
    return int(arch.removeprefix("sm_"))

"""The examples' emitted kernels, and checked runs of them with a mistake planted."""

from __future__ import annotations

import functools

from handwritten_kernels import run

from gemmgen.calling.launches import Case
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.schedule import examples
from gemmgen.schedule.read import read_source
from gemmgen.sim.run import CompiledKernel

NAMES = (*examples.LADDER, "async_copy", "swizzled")


@functools.cache
def emitted(name: str) -> Emitted:
    return compile_source(read_source(str(examples.path_of(name))))


@functools.lru_cache(maxsize=32)
def checked(name: str, text: str | None = None) -> CompiledKernel:
    """A checked build of an example, or of another ``text``, whose warnings do not matter."""
    known = emitted(name)
    if text is None:
        return CompiledKernel(known.text, known.interface, checked=True)
    return CompiledKernel(text, known.interface, checked=True, warn=False)


def complaint(name: str, kernel: CompiledKernel, case: Case) -> str | None:
    """What is wrong with the values that the kernel computes; raises where a check finds more."""
    with_bias = any(param.name == "bias" for param in emitted(name).interface.params)
    compared = run(kernel, case, with_bias=with_bias)
    return None if compared.equal else compared.text()


def planted(text: str, old: str, new: str, nth: int = 1) -> str:
    """``text`` with the ``nth`` ``old`` replaced."""
    parts = text.split(old)
    assert len(parts) > nth, f"the text has no {old!r} number {nth}"
    return old.join(parts[:nth]) + new + old.join(parts[nth:])

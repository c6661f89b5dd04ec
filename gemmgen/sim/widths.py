"""The type of each index into a workspace, which a run on a CPU is too small to make overflow.

A workspace has some elements for each tile of C, so that 2^31 of them take hundreds of thousands of
blocks.  The kernel is compiled once more, without code, with workspaces of a type that accepts
64-bit indices only.
"""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

from gemmgen.base import temporary
from gemmgen.ir.interface import Interface
from gemmgen.ir.planes import WRITTEN
from gemmgen.sim import toolchain
from gemmgen.sim.failures import CompileFailure, TextFailure
from gemmgen.sim.unit import BEGIN, END, closing

_WIDE = """\
#include "host.h"
template <typename T> struct GgWide {
  T *first;
  template <typename I> T &operator[](I index) const {
    static_assert(sizeof(I) == 8, "an index into a workspace has 64 bits");
    return first[index];
  }
  template <typename I> T *operator+(I index) const { return &(*this)[index]; }
};
"""
NARROW = "an index into a workspace has 64 bits"
_LINE = re.compile(r"^(\S+?:\d+):\d+:\s+required from here", re.MULTILINE)


def check_widths(text: str, interface: Interface) -> None:
    """Raises ``CompileFailure`` if a workspace is indexed by fewer than 64 bits, CannotCheck if
    there is no g++."""
    workspaces = [p for p in interface.params if p.kind == "workspace" and p.scales is None]
    names = [WRITTEN if param.planes else param.name for param in workspaces]
    if not names:
        return
    kernels = len({pre_pass.interface for pre_pass in interface.before})
    functions, begin, rest = text.partition(BEGIN)
    kernel = begin + rest.partition(END)[0]
    for name in dict.fromkeys(names):
        pointer = rf"\b((?:unsigned )?\w+) \*(?:__restrict__ )?{name}\b(?=[,)])"
        kernel, count = re.subn(pointer, rf"GgWide<\1> {name}", kernel)
        if count != (kernels if name == WRITTEN else 1):
            raise CompileFailure(f"the text has no parameter {name}")
    with temporary.folder() as directory:
        source = Path(directory, "kernel.cpp")
        unit = f'{_WIDE}#line 1 "{interface.name}.cu"\n{functions}{kernel}\n{closing(functions)}'
        source.write_text(unit, encoding="utf-8")
        flags = (*toolchain.kernel_flags(warn=False), f"-I{resources.files('gemmgen.sim')}")
        try:
            toolchain.gxx(*flags, "-fsyntax-only", str(source))
        except CompileFailure as failure:
            if NARROW not in str(failure):
                raise
            location = _LINE.search(str(failure))
            where = f"{location[1]}: " if location else ""
            raise TextFailure(f"{where}{NARROW}: 2^31 elements are too many for fewer") from None

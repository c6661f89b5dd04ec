"""A whole file: header, kernel between its fixed lines, launcher."""

from __future__ import annotations

import re
import textwrap

from gemmgen.base.record import record
from gemmgen.emit import device_functions
from gemmgen.emit.ctext import c_text
from gemmgen.emit.ctypes import STORED
from gemmgen.emit.header import (
    argument_conditions,
    call_text,
    launch_lines,
    parameter_lines,
    pointer_conditions,
    requirement_lines,
    types_text,
    units_text,
    wrapped,
)
from gemmgen.emit.printing import environment
from gemmgen.emit.views import WIDTH, View, bodies, comment_lines, constant_lines, shared_text
from gemmgen.ir.dtypes import ACCESS
from gemmgen.ir.interface import Interface
from gemmgen.ir.lowered import LoweredKernel, SharedArray

JOINTS = re.compile(r" = |, | [?:] |\((?=&|shared_memory)")
"""Where a long line may be broken."""
INDICES = re.compile(r"\](?=\[)")
"""Where it may be broken if nowhere else."""
CITATIONS = re.compile(r"; | (?=\()")
"""Where a comment may be broken that cites directives."""
BEGIN, END = "// ---- kernel ----", "// ---- end of kernel ----"
"""The lines around the text that every compiler sees alike: NVRTC, nvcc and the host's C++."""


@record
class KernelView:
    begin: str
    end: str
    constants: list[str]
    checks: list[str]
    comment: list[str]
    bounds: str
    name: str
    parameters: list[str]
    shared: list[str]
    body: list[str]
    template = "kernel.j2"


@record
class LauncherView:
    name: str
    parameters: list[str]
    refused: list[str]
    misaligned: list[list[str]]
    empty: str
    scaled: list[str]
    counts: list[str]
    dynamic: list[str]
    block: str
    shared: str
    arguments: str
    template = "launcher.j2"


@record
class FileView:
    what: list[str]
    schedule: list[str]
    types: list[str]
    call: list[str]
    launch: list[str]
    units: str
    requires: list[str]
    functions: list[str]
    kernel: str
    launcher: str
    template = "file.j2"


def emit(kernel: LoweredKernel, what: str, schedule: str) -> str:
    """The CUDA C source of ``kernel``; ``what`` it computes and its canonical schedule head it."""
    interface = kernel.interface
    view = FileView(
        textwrap.wrap(what, WIDTH - 3),
        schedule.rstrip("\n").split("\n"),
        textwrap.wrap(f"call ({types_text(interface)}):", WIDTH - 3),
        _call_lines(interface),
        launch_lines(interface),
        units_text(interface),
        requirement_lines(interface, WIDTH - 8),
        device_functions.called(kernel.body),
        _render(_kernel_view(kernel)),
        _render(_launcher_view(interface)),
    )
    return "\n".join(fold(line.rstrip()) for line in _render(view).split("\n")) + "\n"


def fold(line: str) -> str:
    """A line of at most ``WIDTH`` columns, broken where an expression has a joint."""
    if len(line) <= WIDTH:
        return line
    if line.lstrip().startswith("//"):
        return _fold_comment(line)
    code, note, comment = line.partition("  // ")
    if note:
        return f"{line[: len(line) - len(line.lstrip())]}// {comment}\n{fold(code)}"
    ends = [m.end() for m in JOINTS.finditer(line) if m.end() <= WIDTH]
    ends = ends or [m.end() for m in INDICES.finditer(line) if m.end() <= WIDTH]
    if not ends:
        return line
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    return line[: ends[-1]].rstrip() + "\n" + fold(indent + line[ends[-1] :])


def _fold_comment(line: str) -> str:
    """A comment goes on behind another ``//``."""
    indent = " " * (len(line) - len(line.lstrip()))
    first = len(indent) + len("// ")
    ends = [m.end() for m in CITATIONS.finditer(line, first) if first < m.end() <= WIDTH]
    if not ends:
        return line
    return line[: ends[-1]].rstrip() + "\n" + fold(f"{indent}// {line[ends[-1] :]}")


def _call_lines(interface: Interface) -> list[str]:
    return textwrap.wrap(call_text(interface), WIDTH - 8, subsequent_indent="    ")


def _kernel_view(kernel: LoweredKernel) -> KernelView:
    return KernelView(
        BEGIN,
        END,
        constant_lines(kernel.constants),
        [f'static_assert({c_text(c.condition)}, "{c.message}");' for c in kernel.checks],
        _bounds_comment(kernel),
        "THREADS" if kernel.blocks == 1 else f"THREADS, {kernel.blocks}",
        kernel.interface.name,
        parameter_lines(kernel.interface, 95),
        _shared_lines(kernel),
        bodies(kernel.body, _render),
    )


def _bounds_comment(kernel: LoweredKernel) -> list[str]:
    """Why the bounds are what they are, where a directive says so."""
    count = "one block" if kernel.blocks == 1 else f"{kernel.blocks} blocks"
    note = f"a multiprocessor holds {count} at the least"
    return comment_lines(note, kernel.bounded) if kernel.bounded else []


def _shared_lines(kernel: LoweredKernel) -> list[str]:
    if kernel.interface.dynamic_shared:
        return _dynamic_shared_lines(kernel.shared)
    arrays = [f"__shared__ alignas({a.aligned}) {shared_text(a)};" for a in kernel.shared]
    return [*_shared_comment(kernel.shared), *arrays, ""] if arrays else []


def _dynamic_shared_lines(arrays: tuple[SharedArray, ...]) -> list[str]:
    """Arrays laid one after another in the memory that the launch passes (over 48 KiB), each where
    wide accesses can begin."""
    lines = _shared_comment(arrays)
    aligned = max(array.aligned for array in arrays)
    # Declarations of one name are aligned alike, also those of several kernels in one file.
    memory = "shared_memory" if aligned == ACCESS else f"shared_memory_{aligned}"
    lines.append(f"alignas({aligned}) extern __shared__ unsigned char {memory}[];")
    before: list[str] = []
    for array in arrays:
        inner = "".join(f"[{c_text(extent)}]" for extent in array.shape[1:])
        offset = "".join(f" + {part}" for part in before)
        stored = STORED[array.dtype]
        lines.append(
            f"{stored}(*const {array.name}){inner} ="
            f" reinterpret_cast<{stored}(*){inner}>({memory}{offset});"
        )
        size = f"{c_text(array.shape[0])} * sizeof({array.name}[0])"
        before.append(size if array.bytes % ACCESS == 0 else f"({size} + 15) / 16 * 16")
    return [*lines, ""]


def _shared_comment(arrays: tuple[SharedArray, ...]) -> list[str]:
    """One comment over all arrays, citing the directives that shaped them."""
    origins = dict.fromkeys(origin for array in arrays for origin in array.origins)
    return comment_lines("tiles in shared memory", tuple(origins)) if arrays else []


def _launcher_view(interface: Interface) -> LauncherView:
    x, y = interface.block
    dynamic = interface.dynamic_shared
    extents = list(dict.fromkeys(interface.shaping()))
    pointers = pointer_conditions(interface)
    return LauncherView(
        interface.name,
        [line.replace("__restrict__ ", "") for line in parameter_lines(interface, 92)],
        wrapped(argument_conditions(interface), " || ", 80),
        [wrapped(pointers, " || ", 80)] if pointers else [],
        " || ".join(f"{name} == 0" for name in extents),
        [f"if ({scale} == 0) {terms} = 0;" for scale, terms in _products(interface)],
        _count_lines(interface),
        [str(dynamic)] if dynamic else [],
        f"dim3({x}, {y})" if y > 1 else str(x),
        str(dynamic),
        ", ".join(p.name for p in interface.params),
    )


def _products(interface: Interface) -> list[tuple[str, str]]:
    """The scalar and the extent of a product that the launcher may leave out; none, or one."""
    return [interface.product] if interface.product else []


def _count_lines(interface: Interface) -> list[str]:
    """How the launcher counts its blocks: none of the products wraps."""
    tiles = [f"(({name} - 1) / {size} + 1LL)" for name, size in interface.tiles]
    batches = [name for _, name in interface.batches]
    parts = [str(interface.parts)] if interface.parts > 1 else []
    invalid = "return cudaErrorInvalidConfiguration;"
    if not batches:
        count = " * ".join((*tiles, *parts))
        return [f"const long long blocks = {count};", f"if (blocks > 2147483647) {invalid}"]
    most = " / ".join(("2147483647", *batches, *parts))
    return [
        f"const long long tiles = {' * '.join(tiles)};",
        f"if (tiles > {most}) {invalid}",
        f"const long long blocks = {' * '.join(('tiles', *batches, *parts))};",
    ]


def _render(view: View | KernelView | LauncherView | FileView) -> str:
    return environment().get_template(view.template).render(view=view).rstrip("\n")

"""A whole file: header, kernel between its fixed lines, launcher."""

from __future__ import annotations

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
from gemmgen.emit.layout import SOFT, WIDTH, comment_lines, directive, laid_out
from gemmgen.emit.printing import printed
from gemmgen.emit.views import statements
from gemmgen.ir.dtypes import ACCESS
from gemmgen.ir.interface import Interface
from gemmgen.ir.lowered import Constant, LoweredKernel, SharedArray

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
        [directive(line) for line in schedule.rstrip("\n").split("\n")],
        textwrap.wrap(f"call ({types_text(interface)}):", WIDTH - 3),
        _call_lines(interface),
        launch_lines(interface),
        units_text(interface),
        requirement_lines(interface, WIDTH - 8),
        device_functions.called(kernel.body),
        _render(_kernel_view(kernel)),
        _render(_launcher_view(interface)),
    )
    return laid_out(_render(view)) + "\n"


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
        statements(kernel.body),
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


def shared_text(array: SharedArray) -> str:
    """A shared array's declaration: its type, name and extents."""
    shape = "".join(f"[{c_text(extent)}]" for extent in array.shape)
    return f"{STORED[array.dtype]} {array.name}{shape}"


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
            f" {SOFT}reinterpret_cast<{stored}(*){inner}>({SOFT}{memory}{offset});"
        )
        size = f"{c_text(array.shape[0])} * sizeof({array.name}[0])"
        before.append(size if array.bytes % ACCESS == 0 else f"({size} + 15) / 16 * 16")
    return [*lines, ""]


def _shared_comment(arrays: tuple[SharedArray, ...]) -> list[str]:
    """One comment over all arrays, citing the directives that shaped them."""
    origins = dict.fromkeys(origin for array in arrays for origin in array.origins)
    lines = comment_lines("tiles in shared memory", tuple(origins)) if arrays else []
    return [f"// {line}" for line in lines]


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
        f", {SOFT}".join(p.name for p in interface.params),
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


def constant_lines(constants: tuple[Constant, ...]) -> list[str]:
    """``constexpr`` lines: literals of one note share a line."""
    lines: list[str] = []
    group: list[Constant] = []

    def flush() -> None:
        if group:
            names = ", ".join(f"{c.name} = {_value(c)}" for c in group)
            lines.extend(_noted(f"constexpr int {names};", group[0].note))
            group.clear()

    for constant in constants:
        if group and constant.note != group[0].note:
            flush()
        group.append(constant)
    flush()
    return lines


def _noted(code: str, note: str) -> list[str]:
    """A line and its comment, above it if there is no room for it on its end."""
    if not note:
        return [code]
    line = f"{code}  // {note}"
    return [line] if len(line) <= WIDTH else [f"// {note}", code]


def _value(constant: Constant) -> str:
    return str(constant.value) if constant.definition is None else c_text(constant.definition)


def _render(view: KernelView | LauncherView | FileView) -> str:
    return printed(view.template, {"view": view})

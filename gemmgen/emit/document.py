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
from gemmgen.emit.layout import SOFT, WIDTH, comment_lines, directive, laid_out, plain
from gemmgen.emit.printing import printed
from gemmgen.emit.views import statements
from gemmgen.ir.dtypes import ACCESS
from gemmgen.ir.interface import Interface
from gemmgen.ir.lowered import Constant, LoweredKernel, SharedArray
from gemmgen.ir.target import STATIC_SHARED, TARGETS

BEGIN, END = "// ---- kernel ----", "// ---- end of kernel ----"
"""The lines around the text that every compiler sees alike: NVRTC, nvcc and the host's C++."""
SHARED_BYTES = "SHARED_BYTES"


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
        _render(_launcher_view(kernel)),
    )
    return laid_out(_render(view)) + "\n"


def _call_lines(interface: Interface) -> list[str]:
    return textwrap.wrap(call_text(interface), WIDTH - 8, subsequent_indent="    ")


def _kernel_view(kernel: LoweredKernel) -> KernelView:
    return KernelView(
        BEGIN,
        END,
        [*constant_lines(kernel.constants), *_shared_bytes_lines(kernel)],
        [
            *(f'static_assert({c_text(c.condition)}, {SOFT}"{c.message}");' for c in kernel.checks),
            *_shared_bytes_checks(kernel),
        ],
        _bounds_comment(kernel),
        "THREADS" if kernel.blocks == 1 else f"THREADS, {kernel.blocks}",
        kernel.interface.name,
        parameter_lines(kernel.interface, 95),
        _shared_lines(kernel),
        statements(kernel.body),
    )


def _shared_bytes_lines(kernel: LoweredKernel) -> list[str]:
    """The bytes of shared memory that a block takes, as they follow from the constants."""
    arrays = kernel.shared
    if not arrays:
        return []
    sizes = [f"{_product(a)} * sizeof({STORED[a.dtype]})" for a in arrays]
    if kernel.interface.dynamic_shared:
        laid = zip(sizes, arrays, strict=True)
        sizes = [*(_rounded(size, array) for size, array in laid)][:-1] + sizes[-1:]
    return [f"constexpr int {SHARED_BYTES} = {SOFT}{f' + {SOFT}'.join(sizes)};"]


def _shared_bytes_checks(kernel: LoweredKernel) -> list[str]:
    if not kernel.shared:
        return []
    most, what = STATIC_SHARED, "static shared memory has"
    if kernel.interface.dynamic_shared:
        most, what = max(target.shared for target in TARGETS.values()), "a block has at most"
    message = f"{what} {most // 1024} KiB"
    return [f'static_assert({SHARED_BYTES} <= {most // 1024} * 1024, {SOFT}"{message}");']


def _product(array: SharedArray) -> str:
    """The elements of an array."""
    return " * ".join(f"({t})" if " " in (t := c_text(extent)) else t for extent in array.shape)


def _rounded(size: str, array: SharedArray) -> str:
    """Bytes up to where the next array begins."""
    return size if array.bytes % ACCESS == 0 else f"({size} + 15) / 16 * 16"


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
        before.append(_rounded(f"{c_text(array.shape[0])} * sizeof({array.name}[0])", array))
    return [*lines, ""]


def _shared_comment(arrays: tuple[SharedArray, ...]) -> list[str]:
    """One comment over all arrays, citing the directives that shaped them."""
    origins = dict.fromkeys(origin for array in arrays for origin in array.origins)
    lines = comment_lines("tiles in shared memory", tuple(origins)) if arrays else []
    return [f"// {line}" for line in lines]


def _launcher_view(kernel: LoweredKernel) -> LauncherView:
    interface, threads = kernel.interface, ", ".join(v.name for v in kernel.launch.block)
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
        _count_lines(kernel),
        [SHARED_BYTES] if dynamic else [],
        f"dim3({threads})" if len(kernel.launch.block) > 1 else threads,
        SHARED_BYTES if dynamic else "0",
        f", {SOFT}".join(p.name for p in interface.params),
    )


def _products(interface: Interface) -> list[tuple[str, str]]:
    """The scalar and the extent of a product that the launcher may leave out; none, or one."""
    return [interface.product] if interface.product else []


def _count_lines(kernel: LoweredKernel) -> list[str]:
    """How the launcher counts its blocks: none of the products wraps."""
    interface, launch = kernel.interface, kernel.launch
    extents = zip(interface.tiles, launch.tiles, strict=True)
    tiles = [f"(({name} - 1) / {size.name} + 1LL)" for (name, _), size in extents]
    batches = [name for _, name in interface.batches]
    parts = [launch.parts.name] if launch.parts else []
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
            lines.extend(_declared([f"{c.name} = {_value(c)}" for c in group], group[0].note))
            group.clear()

    for constant in constants:
        if group and constant.note != group[0].note:
            flush()
        group.append(constant)
    flush()
    return lines


def _declared(texts: list[str], note: str) -> list[str]:
    """Constants of one note: on one line with it, below it, or each on a line of its own."""
    code = f"constexpr int {', '.join(texts)};"
    if len(plain(code)) > WIDTH:
        return [f"// {note}", *(f"constexpr int {text};" for text in texts)]
    line = f"{code}  // {note}" if note else code
    return [line] if len(plain(line)) <= WIDTH else [f"// {note}", code]


def _value(constant: Constant) -> str:
    return str(constant.value) if constant.definition is None else c_text(constant.definition)


def _render(view: KernelView | LauncherView | FileView) -> str:
    return printed(view.template, {"view": view})

"""The kernel and the constants above it."""

from __future__ import annotations

from dataclasses import replace

from gemmgen.emit.cited_once import Names, cited, cited_once, short_names
from gemmgen.emit.ctext import c_text, factor
from gemmgen.emit.ctypes import STORED
from gemmgen.emit.line_breaks import WIDTH, comment_lines, plain
from gemmgen.emit.parameter_list import parameter_rows
from gemmgen.emit.printing import printed
from gemmgen.emit.statement_text import function_text, statements
from gemmgen.emit.views import View, fields_view
from gemmgen.ir import names
from gemmgen.ir.dtypes import ACCESS, BYTES
from gemmgen.ir.expr import Binary, Int, Var
from gemmgen.ir.lowered import Check, Constant, LoweredKernel, SharedArray, ends_at
from gemmgen.ir.target import STATIC_SHARED, TARGETS
from gemmgen.ir.thread_code import Function, executes

BEGIN, END = "// ---- kernel ----", "// ---- end of kernel ----"
"""The lines around the text that is the same for every compiler: NVRTC, nvcc and the host's C++."""
SHARED_BYTES = Var("SHARED_BYTES")


def kernel_view(kernel: LoweredKernel, schedule: str) -> View:
    """What ``kernel.j2`` sees; its comments cite directives of the canonical ``schedule``."""
    cites = short_names(schedule)
    shared, dynamic = kernel.shared, kernel.interface.dynamic_shared
    return {
        "begin": BEGIN,
        "end": END,
        "constants": [*_constants(kernel.constants), *([_shared_bytes(kernel)] if dynamic else [])],
        "checks": [
            fields_view(check) for check in (*kernel.checks, *([_limit()] if dynamic else []))
        ],
        "functions": [function_text(_citing(function, cites)) for function in kernel.functions],
        "comment": _bounds_comment(kernel, cites),
        "threads": c_text(kernel.launch.count),
        "resident": [kernel.blocks] if kernel.blocks > 1 or _sets_registers(kernel) else [],
        "cluster": [names.CLUSTER.name] if kernel.interface.cluster else [],
        "name": kernel.interface.name,
        "parameters": parameter_rows(
            # What is restricted and constant may be read before the preceding kernel has ended.
            kernel.interface.kernel_params,
            95,
            restrict=kernel.interface.attribute != "dependent_launch",
        ),
        "shared": [_shared(kernel, cites)] if shared else [],
        "body": statements(cited_once(kernel.body, cites)),
        "pre_passes": [_pre_pass(pre_pass, cites) for pre_pass in kernel.pre_passes],
    }


def _pre_pass(kernel: LoweredKernel, cites: Names) -> str:
    """The kernel of the pre-pass."""
    view: View = {
        "threads": c_text(kernel.launch.count),
        "name": kernel.interface.name,
        "parameters": parameter_rows(kernel.interface.params, 95, restrict=True),
        "shared": _array_views(kernel),
        "body": statements(cited_once(kernel.body, cites)),
    }
    return printed("pre_pass.j2", view)


def _citing(function: Function, cites: Names) -> Function:
    return replace(function, origins=cited(function.origins, cites))


def _sets_registers(kernel: LoweredKernel) -> bool:
    """Whether warpgroups share out registers.  Unless the blocks of a multiprocessor are stated,
    ptxas gives the threads that take some no more than they began with."""
    return executes(kernel.body, "more_registers")


def _constants(constants: tuple[Constant, ...]) -> list[str]:
    """The constants; those of one note share a line."""
    groups: list[list[Constant]] = []
    for constant in constants:
        if not groups or constant.note != groups[-1][0].note:
            groups.append([])
        groups[-1].append(constant)
    return [_group(group) for group in groups]


def _group(group: list[Constant]) -> str:
    """Constants of one note: on one line with it, below it, or each on its own line."""
    note = [group[0].note] if group[0].note else []
    declared = [{"name": c.name, "value": _value(c)} for c in group]
    apart = [[one] for one in declared]
    text = printed("constants.j2", {"above": [], "lines": [declared], "after": note})
    for lines in ([declared], apart):
        if len(plain(text).rpartition("\n")[2]) > WIDTH:
            text = printed("constants.j2", {"above": note, "lines": lines, "after": []})
    return text


def _value(constant: Constant) -> str:
    return str(constant.value) if constant.definition is None else c_text(constant.definition)


def _shared_bytes(kernel: LoweredKernel) -> str:
    """The bytes of dynamic shared memory of a block, as they follow from the constants."""
    return printed("shared_bytes.j2", {"arrays": _array_views(kernel)})


def _array_views(kernel: LoweredKernel) -> list[View]:
    units = zip(kernel.shared, ends_at(kernel.shared), strict=True)
    return [_array_view(array, unit) for array, unit in units]


def _array_view(array: SharedArray, unit: int) -> View:
    """An array in shared memory; ``padded`` if those after it need its end rounded up."""
    return {
        **fields_view(array),
        "type": STORED[array.dtype],
        "item": BYTES[array.dtype],
        "factors": [factor(extent) for extent in array.shape],
        "row": [c_text(extent) for extent in array.shape[1:]],
        "padded": range(array.bytes % unit != 0),
        "unit": unit,
    }


def _begins_after(before: list[View]) -> View:
    """Where an array begins: at the end of the last one, or at the rounded end of all of them."""
    if any(array["padded"] for array in before):
        return {"last": [], "before": [before]}
    return {"last": before[-1:], "before": [] if before else [[]]}


def _limit() -> Check:
    """That a block may have its dynamic shared memory."""
    kib = max(target.shared for target in TARGETS.values()) // 1024
    bound = Binary("<=", SHARED_BYTES, Int(kib) * 1024)
    return Check(bound, f"a block has at most {kib} KiB")


def _bounds_comment(kernel: LoweredKernel, cites: Names) -> list[str]:
    """The directives that chose the launch bounds, if any did."""
    count = "one block" if kernel.blocks == 1 else f"{kernel.blocks} blocks"
    note = f"at least {count} resident per multiprocessor"
    return comment_lines(note, cited(kernel.bounded, cites)) if kernel.bounded else []


def _shared(kernel: LoweredKernel, cites: Names) -> str:
    """The arrays in shared memory, under one comment that cites the directives that shaped them.

    Over 48 KiB they are laid one after another in the memory that the launch passes, each
    aligned for wide accesses.
    """
    origins = dict.fromkeys(origin for array in kernel.shared for origin in array.origins)
    arrays = _array_views(kernel)
    view: View = {"comment": comment_lines("tiles in shared memory", cited(tuple(origins), cites))}
    if not kernel.interface.dynamic_shared:
        return printed("shared.j2", {**view, "arrays": arrays, "kib": STATIC_SHARED // 1024})
    aligned = max(array.aligned for array in kernel.shared)
    # All declarations of one name have one alignment, also those of several kernels in one file.
    memory = "shared_memory" if aligned == ACCESS else f"shared_memory_{aligned}"
    laid = [{**array, **_begins_after(arrays[:i])} for i, array in enumerate(arrays)]
    view |= {"aligned": aligned, "memory": memory, "arrays": laid}
    return printed("dynamic_shared.j2", view)

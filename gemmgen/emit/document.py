"""A whole file: comment, device functions, kernel, launcher; and the header that declares it."""

from __future__ import annotations

import textwrap

from gemmgen.emit import device_functions
from gemmgen.emit.header import call_text, launch_lines, requirement_lines, types_text, units_text
from gemmgen.emit.kernel_view import kernel_view
from gemmgen.emit.launcher_types import ElementTypes, includes
from gemmgen.emit.launcher_view import launcher_rows, launcher_view
from gemmgen.emit.line_breaks import WIDTH, directive, laid_out
from gemmgen.emit.printing import printed
from gemmgen.emit.tensor_maps import map_lines
from gemmgen.emit.views import View
from gemmgen.ir.interface import Interface
from gemmgen.ir.lowered import LoweredKernel
from gemmgen.ir.parameters import namespace


def emit(kernel: LoweredKernel, what: str, schedule: str, types: ElementTypes = "bits") -> str:
    """The CUDA C source of ``kernel``; its first comment has ``what`` (the formula) and the
    canonical schedule.  ``types`` are those of the launcher's signature."""
    view: View = {
        "comment": _comment(kernel.interface, what, schedule, types),
        "includes": includes(kernel.interface, types),
        "namespace": namespace(kernel.interface.name),
        "functions": device_functions.above(kernel),
        "kernel": printed("kernel.j2", kernel_view(kernel, schedule)),
        "launcher": printed("launcher.j2", launcher_view(kernel, types)),
    }
    return laid_out(printed("file.j2", view)) + "\n"


def emit_header(
    kernel: LoweredKernel, what: str, schedule: str, types: ElementTypes = "bits"
) -> str:
    """A C++ header that declares the launcher of ``emit``'s text, under the same comment and one of
    what it returns."""
    launcher = launcher_view(kernel, types)
    view: View = {
        "comment": _comment(kernel.interface, what, schedule, types),
        "includes": includes(kernel.interface, types),
        "name": kernel.interface.name,
        "parameters": launcher_rows(kernel.interface, types),
        "misaligned": launcher["misaligned"],
        "mapped": kernel.interface.maps[:1],
        "most": kernel.interface.most_tiles,
        "counted": "tiles" if kernel.interface.parts == 1 else "tiles and slices of them",
    }
    return laid_out(printed("header.j2", view)) + "\n"


def _comment(interface: Interface, what: str, schedule: str, types: ElementTypes) -> str:
    """The schedule, how the launcher is called, and what it requires."""
    room = WIDTH - len("//     ")
    view: View = {
        "what": textwrap.wrap(what, WIDTH - len("// ")),
        "schedule": [directive(line) for line in schedule.rstrip("\n").split("\n")],
        "types": textwrap.wrap(f"call ({types_text(interface, types)}):", WIDTH - len("// ")),
        "call": textwrap.wrap(call_text(interface), room - 1, subsequent_indent="    "),
        "launch": launch_lines(interface),
        "units": units_text(interface),
        "requires": requirement_lines(interface, room - 1),
        "maps": map_lines(interface),
    }
    return printed("comment.j2", view)

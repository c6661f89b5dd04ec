"""A whole file: header, device functions, kernel, launcher."""

from __future__ import annotations

import textwrap

from gemmgen.emit import device_functions
from gemmgen.emit.header import call_text, launch_lines, requirement_lines, types_text, units_text
from gemmgen.emit.kernel_view import kernel_view
from gemmgen.emit.launcher_view import launcher_view
from gemmgen.emit.line_breaks import WIDTH, directive, laid_out
from gemmgen.emit.printing import printed
from gemmgen.emit.tensor_maps import map_lines
from gemmgen.emit.views import View
from gemmgen.ir.lowered import LoweredKernel
from gemmgen.ir.parameters import namespace


def emit(kernel: LoweredKernel, what: str, schedule: str) -> str:
    """The CUDA C source of ``kernel``; its header has ``what`` (the formula) and the canonical
    schedule."""
    interface = kernel.interface
    room = WIDTH - len("//     ")
    view: View = {
        "what": textwrap.wrap(what, WIDTH - len("// ")),
        "schedule": [directive(line) for line in schedule.rstrip("\n").split("\n")],
        "types": textwrap.wrap(f"call ({types_text(interface)}):", WIDTH - len("// ")),
        "call": textwrap.wrap(call_text(interface), room - 1, subsequent_indent="    "),
        "launch": launch_lines(interface),
        "units": units_text(interface),
        "requires": requirement_lines(interface, room - 1),
        "namespace": namespace(interface.name),
        "maps": map_lines(interface),
        "functions": device_functions.above(kernel),
        "kernel": printed("kernel.j2", kernel_view(kernel)),
        "launcher": printed("launcher.j2", launcher_view(kernel)),
    }
    return laid_out(printed("file.j2", view)) + "\n"

"""Texts of a kernel for the host's C++: with CUDA's types, its header, and a whole program."""

from __future__ import annotations

from collections.abc import Mapping

from gemmgen.emit import ELEMENT_TYPES, ElementTypes, emit, emit_header, names_of
from gemmgen.emit.formula import formula_comment
from gemmgen.limits.collisions import check_identifiers, check_program
from gemmgen.pipeline import Emitted

__all__ = ["ELEMENT_TYPES", "ElementTypes", "header", "host_program", "with_types"]


def with_types(emitted: Emitted, types: ElementTypes) -> str:
    """The text of the kernel, whose launcher has these element types; ScheduleError for a name
    that they take."""
    kernel = emitted.lowered.kernels[0]
    text = emit(kernel, formula_comment(emitted.program), emitted.schedule.text, types)
    check_identifiers(emitted.schedule, names_of(text).repeated)
    return text


def header(emitted: Emitted, types: ElementTypes = "bits") -> str:
    """A C++ header that declares the launcher."""
    kernel = emitted.lowered.kernels[0]
    return emit_header(kernel, formula_comment(emitted.program), emitted.schedule.text, types)


def host_program(emitted: Emitted, extents: Mapping[str, int], file: str) -> str:
    """``emit.main``'s program, default ``extents`` by name; ScheduleError for a name it needs."""
    from gemmgen.emit.main import MainProgram, is_own, program_text

    main = MainProgram(
        emitted.interface, emitted.program.problem.written, extents, file, emitted.target
    )
    text = program_text(main, emitted.text)
    check_program(emitted.schedule, emitted.interface, is_own, names_of(text).repeated)
    return text

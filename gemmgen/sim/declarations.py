"""Declarations of kernels and of their parameters.

A host compiler ignores CUDA's attributes, and passes a structure by value as any function does.  So
a run cannot detect a wrong declaration; it is checked in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gemmgen.base.record import record
from gemmgen.ir.interface import Interface
from gemmgen.ir.tensor_map import map_name
from gemmgen.sim.failures import TextFailure

MAP_ALIGNMENT = 64
"""Bytes: the CUDA driver's and the TMA's requirement of a CUtensorMap's address."""

_HEAD = re.compile(r"^([^\n#]*)\b__global__\b(.*?)(\w+)\(([^(){};]*)\)\s*\{", re.M | re.S)
_BOUNDS = re.compile(r"\b__launch_bounds__\((.*)\)", re.S)
_MAP_STRUCT = re.compile(r"\bstruct\s+(?:alignas\((\d+)\)\s+)?gg_tensor_map\s*\{")
_MAP_PARAMETER = re.compile(r"const __grid_constant__ gg_tensor_map \w+")
_MAP_ARGUMENT = re.compile(r"[(,]\s*((?:const )?gg_tensor_map )(?=\w)")


@record
class SignatureHead:
    """``extern "C" __global__ void __launch_bounds__(256) name(parameters) {`` in a line."""

    before: str
    attributes: str
    name: str
    parameters: tuple[str, ...]
    line: int


def check_declarations(text: str, interface: Interface) -> None:
    """Raises TextFailure, which says where, for a declaration that is wrong on a GPU."""
    code = re.sub(r"//[^\n]*", lambda found: " " * len(found[0]), text)
    complaints = [*_of_maps(code), *(x for head in heads(code) for x in _of_head(head, interface))]
    complaints += [*_of_launches(code, interface), *_of_statics(code)]
    for line, complaint in sorted(complaints):
        raise TextFailure(f"{interface.name}.cu:{line}: {complaint}")


def heads(code: str) -> list[SignatureHead]:
    """The heads of the kernels in ``code``."""
    return [
        SignatureHead(
            found[1], found[2], found[3], _parameters(found[4]), _line(code, found.start())
        )
        for found in _HEAD.finditer(code)
    ]


def _parameters(text: str) -> tuple[str, ...]:
    return tuple(" ".join(each.split()) for each in text.split(",") if each.strip())


def _line(code: str, at: int) -> int:
    return code.count("\n", 0, at) + 1


def _of_head(head: SignatureHead, interface: Interface) -> Iterator[tuple[int, str]]:
    if 'extern "C"' not in head.before:
        yield head.line, f'{head.name} is loaded by its name: it lacks extern "C"'
    if not _BOUNDS.search(head.attributes):
        yield head.line, f"{head.name} lacks __launch_bounds__: registers may not suffice"
    shared = {param.name for param in interface.params if param.is_scratch}
    shared |= {one.parameter for one in interface.maps}
    for parameter in head.parameters:
        name = parameter.split()[-1].lstrip("*&")
        if "gg_tensor_map" in parameter and not _MAP_PARAMETER.fullmatch(parameter):
            yield head.line, (
                f"the tensor map {name} is not const __grid_constant__: its address would be that "
                "of a copy in a thread's local memory, which the TMA cannot read"
            )
        if "__restrict__" not in parameter or head.name != interface.name:
            continue
        if name in shared or map_name(name) in shared:
            yield head.line, f"{name} is __restrict__, and other threads write to it"


def _of_maps(code: str) -> Iterator[tuple[int, str]]:
    """The structure of a tensor map, and functions that take one."""
    struct = _MAP_STRUCT.search(code)
    if struct is not None and int(struct[1] or 8) < MAP_ALIGNMENT:
        yield (
            _line(code, struct.start()),
            f"a tensor map is not aligned to {MAP_ALIGNMENT} bytes",
        )
    for found in _MAP_ARGUMENT.finditer(code):
        yield (
            _line(code, found.start(1)),
            "a function takes a tensor map by value: its address would be that of a copy",
        )


def _of_statics(code: str) -> Iterator[tuple[int, str]]:
    """What a launcher keeps from call to call."""
    for found in re.finditer(r"^ +static (?!thread_local |const )\w[^;\n]*;", code, re.M):
        yield _line(code, found.start()), "what a launcher keeps is not thread_local"


def _of_launches(code: str, interface: Interface) -> Iterator[tuple[int, str]]:
    """The threads of pre-passes, which their launches and their bounds both state."""
    names = {launch.interface.name for launch in interface.before}
    for head in heads(code):
        name, bounds = head.name, _BOUNDS.search(head.attributes)
        if name not in names or bounds is None:
            continue
        for found in re.finditer(rf"\b{name}<<<(.*?)>>>", code, re.S):
            threads = found[1].split(",")[-3].strip()
            if threads != bounds[1].strip():
                line = _line(code, found.start())
                yield line, f"{name} has {threads} threads, and bounds of {bounds[1]}"

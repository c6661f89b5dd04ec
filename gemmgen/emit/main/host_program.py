"""The whole host program: a comment, the kernel's text, the program."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from pathlib import PurePath

from gemmgen.base.record import record
from gemmgen.emit.ctext import c_double, c_float
from gemmgen.emit.ctypes import STORED
from gemmgen.emit.line_breaks import laid_out
from gemmgen.emit.main.comparison import arguments, epilogue_view, names, rounding_view, wide
from gemmgen.emit.main.layout import (
    OWN,
    element_types,
    elements,
    number_type,
    place,
    scratch_count,
    scratch_type,
    steps,
    tile_count,
)
from gemmgen.emit.main.rival import data_type, has_call, rival
from gemmgen.emit.printing import printed
from gemmgen.emit.views import View
from gemmgen.ir.dtypes import INTEGERS, RAW, DType
from gemmgen.ir.expr import Var
from gemmgen.ir.interface import Interface
from gemmgen.ir.param import Param
from gemmgen.ir.problem import Problem, Tensor, default_epilogue
from gemmgen.ir.requirement import Equal, MultipleOf
from gemmgen.ir.target import nvcc_flag

CUBLAS = "cuBLAS"
_TIMED = {"alpha": 1.0, "beta": 0.0}
_CHECKED = {"alpha": 1.5, "beta": -0.5}
_OTHERS = (0.75, -1.25, 1.75, -2.25)
"""The values of other scalars, as ``gemmgen bench`` has them."""


@record
class MainProgram:
    """A host program: the kernel's interface and problem, the extents that it has by default, by
    their names, the file that it will be in, and the target."""

    interface: Interface
    problem: Problem
    extents: Mapping[str, int]
    file: str
    target: str


def program_text(wanted: MainProgram, kernel: str) -> str:
    """The text of one file: ``kernel`` (an emitted text) and a ``main`` that times it and cuBLAS in
    turns, and then compares their results."""
    return "".join(
        (
            laid_out(printed("main/head.j2", _head(wanted))),
            "\n\n",
            kernel,
            laid_out(printed("main/program.j2", _program(wanted))),
            "\n",
        )
    )


def _head(wanted: MainProgram) -> View:
    letters = wanted.interface.extent_names()
    is_own = wanted.target.endswith("a")  # no other architecture has all of its instructions
    return {
        "name": wanted.interface.name,
        "beside": f" and {CUBLAS}, timed alternately" if has_call(wanted.problem) else ", timed",
        "program": PurePath(wanted.file).stem,
        "file": wanted.file,
        "letters": letters,
        "defaults": [wanted.extents[name] for name in letters],
        "arch": nvcc_flag(wanted.target) if is_own else "-arch=native",
        "gpu": (
            f"For {wanted.target} alone."
            if is_own
            else f"`native` is the GPU of this machine: {wanted.target} or later."
        ),
    }


def _program(wanted: MainProgram) -> View:
    interface, problem = wanted.interface, wanted.problem
    stored = {param.dtype for param in interface.tensors}
    has_integers = not stored.isdisjoint(INTEGERS)
    own = [dtype for dtype in OWN if dtype in stored]
    includes = (printed(f"main/numbers/include_{x}.j2", {}) for x in own if x in RAW)
    epilogue = epilogue_view(problem)
    comparison = {
        **epilogue,
        "wide": wide(problem),
        **rounding_view(interface, problem, interface.extent(problem.k)),
        "parameters": [f"double {name}" for name in names(problem.epilogue)],
        "whole": range(not epilogue["edges"]),
    }
    requires = range(bool(_requirements(interface)))
    return {
        "numbers": [*dict.fromkeys(includes)],
        "parts": [
            printed(
                "main/errors.j2", {"numbers": [printed(f"main/numbers/{x}.j2", {}) for x in own]}
            ),
            *(printed("main/require.j2", {}) for _ in requires),
            printed(
                "main/tensor.j2",
                {
                    "wide": wide(problem),
                    "integers": [_reach(problem)] if has_integers else [],
                    "fractions": range(not has_integers),
                },
            ),
            *(printed("main/zeros.j2", {}) for _ in interface.scratch[:1]),
            printed("main/timing.j2", {}),
            printed("main/comparison.j2", comparison),
        ],
        "main": printed("main/main.j2", _main(wanted)),
    }


def _main(wanted: MainProgram) -> View:
    """What ``main.j2`` sees."""
    interface, problem = wanted.interface, wanted.problem
    letters = interface.extent_names()
    fits = has_call(problem)
    tensors = [_tensor(interface, param) for param in interface.tensors]
    return {
        "name": interface.name,
        "letters": letters,
        "extents": [f"{name} = {wanted.extents[name]}" for name in letters],
        "addresses": [f"&{name}" for name in letters],
        "requires": _requirements(interface),
        "tensors": tensors,
        "scalars": _scalars(interface),
        "tiles": [
            tile_count(interface) for _ in [p for p in interface.scratch if not p.is_prepared][:1]
        ],
        "scratch": [
            {"type": scratch_type(param), "name": param.name, "count": scratch_count(param)}
            for param in interface.scratch
        ],
        "arguments": [
            f"{param.name}.there" if param.kind == "tensor" else param.name
            for param in interface.params
        ],
        "rival": [
            rival(interface, problem, number_type(problem.accumulate), len(tensors) + 1)
            for _ in range(fits)
        ],
        "shown": ", ".join(f"{name} %d" for name in letters),
        "race": printed("main/race.j2" if fits else "main/alone.j2", _race(interface, problem)),
        "check": printed("main/check.j2", _check(interface, problem, fits)),
    }


def _reach(problem: Problem) -> int:
    """The bound of random integers: small ones where C has a byte, which would saturate."""
    return 4 if problem.c.dtype == "i8" else 128


def _requirements(interface: Interface) -> list[str]:
    """What the launcher requires of extents alone."""
    extents = interface.extent_names()
    return [
        rule.text()
        for rule in interface.requirements
        if isinstance(rule, MultipleOf | Equal) and rule.name in extents
    ]


def _tensor(interface: Interface, param: Param) -> View:
    return {
        "name": param.name,
        "types": element_types(param, STORED[param.dtype]),
        "steps": steps(interface, param),
        "count": elements(interface, param),
    }


def _scalars(interface: Interface) -> list[View]:
    others = cycle(_OTHERS)
    return [
        {
            "type": STORED[param.dtype],
            "name": param.name,
            "value": _literal(
                _TIMED[param.name] if param.name in _TIMED else next(others), param.dtype
            ),
        }
        for param in interface.scalars
    ]


def _literal(value: float, dtype: DType) -> str:
    """In C; of an integer, four times ``value`` if that is none."""
    if dtype in INTEGERS:
        return str(int(value if value.is_integer() else 4 * value))
    return c_double(value) if dtype == "f64" else c_float(value)


def _race(interface: Interface, problem: Problem) -> View:
    operands = (problem.a, problem.b, problem.c)
    types = ", ".join(f"{tensor.name} {tensor.dtype}" for tensor in operands)
    width = max(len(interface.name), len(CUBLAS))
    return {
        "label": interface.name.ljust(width),
        "rival": CUBLAS.ljust(width),
        "sizes": [interface.extent(letter) for letter in problem.letters],
        "type": data_type(problem.c.dtype),
        "of": (
            ""
            if problem.epilogue in (Var("acc"), default_epilogue(problem.c))
            else ", the product alone"
        ),
        "why": (
            "cuBLAS is not called for integers"
            if problem.a.dtype in INTEGERS
            else f"cuBLAS has no call for {types}"
        ),
    }


def _check(interface: Interface, problem: Problem, fits: bool) -> View:
    """What ``check.j2`` sees: loops over the letters of C, and what is added for an element."""
    tensors = {param.name: param for param in interface.tensors}
    *outer, inner = [
        printed("main/loop.j2", {"letter": letter, "extent": interface.extent(letter)})
        for letter in problem.c.letters
    ]
    depth = interface.extent(problem.k)
    a, b = (_element(interface, tensors[x.name], x) for x in (problem.a, problem.b))
    scalars: dict[str, DType] = {param.name: param.dtype for param in interface.scalars}
    return {
        "beside": (" against cuBLAS and the epilogue" if fits else " against double precision"),
        "innermost": inner,
        "alone": range(not fits),
        "k": problem.k,
        "depth": depth,
        "a": a,
        "b": b,
        "place": place(interface, tensors[problem.c.name]),
        "total": "totals[at]" if fits else "total",
        "arguments": arguments(interface, problem),
        "c": problem.c.name,
        "scalars": [
            {"name": name, "value": _literal(value, scalars[name])}
            for name, value in _CHECKED.items()
            if name in scalars
        ],
        "rival": [data_type(problem.accumulate)] if fits else [],
        "loops": ["    " * at + loop for at, loop in enumerate(outer)],
        "indent": "    " * len(outer),
        **rounding_view(interface, problem, depth),
    }


def _element(interface: Interface, param: Param, tensor: Tensor) -> str:
    return f"{tensor.name}[{place(interface, param)}]"

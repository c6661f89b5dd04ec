"""The request for a schedule: a problem, its extents, and a GPU."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from math import prod
from pathlib import Path

from gemmgen.base.errors import UsageError
from gemmgen.base.record import record
from gemmgen.base.source import Source, value_shown
from gemmgen.gpu.gpu_names import gpu_named
from gemmgen.gpu.gpus import DEFAULT, Gpu
from gemmgen.ir.atoms import ATOMS, VIA, Atom, Product
from gemmgen.ir.blocked_letters import block, plain
from gemmgen.ir.decompositions import Fast, allowed_terms
from gemmgen.ir.dtypes import BYTES, DTYPES, DType, widest
from gemmgen.ir.interface import INT_MAX
from gemmgen.ir.launch_shape import Shape
from gemmgen.ir.parameters import ld_name
from gemmgen.ir.target import SINCE, has, offers
from gemmgen.language import parse_schedule
from gemmgen.schedule.extents import AnyShape, shape_of
from gemmgen.schedule.model import Access, Gemm, Schedule
from gemmgen.schedule.roles import extents, matrix, roles

SECTOR = 32
"""Bytes that memory moves at once."""


@record
class Request:
    """``problem`` is a schedule without directives: the gemm line, the types, the epilogue.

    ``pitches`` has the leading dimensions that were given, in elements, by the tensor's name; a
    tensor without one is dense.  ``terms``: products of f32 may be computed as products of terms
    of this type on tensor cores (``decompose``).
    """

    problem: Schedule
    shape: Shape
    gpu: Gpu
    pitches: tuple[tuple[str, int], ...] = ()
    terms: DType | None = None

    @staticmethod
    def of(
        gemm: str,
        shape: AnyShape,
        *,
        dtype: str = "f32",
        epilogue: str | None = None,
        gpu: str | Path | Gpu = DEFAULT,
        ld: Mapping[str, int] | None = None,
        kernel: str = "gemm",
        fast: Fast = False,
        same_bits: str | None = None,
    ) -> Request:
        """The arguments of ``gemmgen.suggest``, checked as it says."""
        texts = {"gemm": gemm, "dtype": dtype, "kernel": kernel}
        if same_bits is not None:
            texts["same_bits"] = same_bits
        _check_texts(texts if epilogue is None else texts | {"epilogue": epilogue})
        chosen = gpu_named(gpu)
        problem = _problem(gemm, dtype, epilogue, kernel, same_bits, chosen)
        sizes = shape_of(problem.gemm, shape)
        if min(sizes) < 1:
            raise UsageError("a shape to suggest a schedule for has extents of at least 1")
        ld = {} if ld is None else ld
        if not isinstance(ld, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"ld={value_shown(ld)}: it maps tensors to elements, {{'A': 1024}}")
        found = Request(problem, sizes, chosen, tuple(ld.items()), allowed_terms(fast))
        found.check_pitches()
        if found.terms:
            found.check_fast()
        return found

    @cached_property
    def exchanged(self) -> Request:
        """The same product with its factors, and their roles, exchanged."""
        gemm, (m, n, *others) = self.problem.gemm, self.shape
        problem = replace(self.problem, gemm=replace(gemm, a=gemm.b, b=gemm.a))
        return replace(self, problem=problem, shape=(n, m, *others))

    @cached_property
    def letters(self) -> tuple[str, str, str]:
        """The row, column and contracted letters."""
        return roles(self.problem.gemm)

    @cached_property
    def access(self) -> dict[str, Access]:
        """The tensors in the gemm line, by their roles ``a``, ``b`` and ``c``."""
        gemm = self.problem.gemm
        return {"a": gemm.a, "b": gemm.b, "c": gemm.c}

    @cached_property
    def dtype(self) -> dict[str, DType]:
        """The types of ``a``, ``b``, ``c`` and ``acc``."""
        types, names = dict(self.problem.dtypes), {
            role: x.tensor for role, x in self.access.items()
        }
        return {role: types[name] for role, name in (names | {"acc": "acc"}).items()}

    @cached_property
    def atom(self) -> Atom | None:
        """What a warp multiplies the operands by on the GPU's tensor cores (mma.sync), if these are
        better at it than its other lanes."""
        a, b, _, acc = self.dtype.values()
        return _atom((a, b, acc), self.gpu)

    @cached_property
    def scaled_terms(self) -> int:
        """Elements along k of the shortest block with a scale of its own; 0 without scales."""
        indices = (x for scale in self.problem.gemm.scales for x in scale.indices)
        return min((block(x) for x in indices if plain(x) == self.letters[2]), default=0)

    @cached_property
    def along(self) -> dict[str, str]:
        """The letter along which each tensor is contiguous: ``m``, ``n`` or ``k``."""
        names = dict(zip(self.letters, "mnk", strict=True))
        return {role: names[access.indices[-1]] for role, access in self.access.items()}

    @cached_property
    def width(self) -> dict[str, int]:
        """Elements of each tensor's widest access that never straddles rows: 1 if rows are odd."""
        found: dict[str, int] = {}
        for role in self.access:
            steps = (widest(self.dtype[role]), *self.strides(role)[:-1])
            found[role] = next(w for w in (16, 8, 4, 2, 1) if not any(step % w for step in steps))
        return found

    @cached_property
    def whole_sectors(self) -> bool:
        """Whether each row of C begins at a multiple of the 32 bytes that memory moves at once."""
        return self.pitch("c") * BYTES[self.dtype["c"]] % SECTOR == 0

    def extent(self, letter: str) -> int:
        return dict(zip(extents(self.problem.gemm), self.shape, strict=True))[letter]

    def strides(self, role: str) -> tuple[int, ...]:
        """Elements between neighbours along each letter of a tensor, in storage order."""
        access = self.access[role]
        given, tiled = dict(self.pitches).get(access.tensor), matrix(access, self.problem.gemm)
        found, step = [1], 1
        for letter, inner in zip(access.indices[-2::-1], access.indices[:0:-1], strict=True):
            step *= self.extent(inner)
            if letter == tiled[0] and given is not None:
                step = given
            found.append(step)
        return tuple(reversed(found))

    def pitch(self, role: str) -> int:
        """The leading dimension of a tensor: elements from a row to the next."""
        access = self.access[role]
        outer = matrix(access, self.problem.gemm)[0]
        return self.strides(role)[access.indices.index(outer)]

    @cached_property
    def pitch_bytes(self) -> tuple[int, int, int]:
        """Bytes from a row of A, of B and of C to the next."""
        a, b, c = (self.pitch(role) * BYTES[self.dtype[role]] for role in "abc")
        return a, b, c

    def check_fast(self) -> None:
        """Raises ``UsageError`` unless products of terms compute this request faster."""
        for role, access in self.access.items():
            if self.dtype[role] != "f32":
                raise UsageError(
                    f"fast is for f32 from products of terms, and {access.tensor} is "
                    f"{self.dtype[role]}: leave it out"
                )
        if not self.gpu.arch.startswith("sm_90"):
            raise UsageError(
                f"fast takes wgmma (sm_90), and {self.gpu.name} is {self.gpu.arch}: leave it out, "
                "or start from examples/mma/split_f32.sched, by mma.sync"
            )

    def check_pitches(self) -> None:
        """Raises ``UsageError`` for a leading dimension that no tensor here has."""
        known = {x.tensor: x for x in self.access.values()}
        for name, size in self.pitches:
            if name not in known:
                tensors = ", ".join(known)
                raise UsageError(
                    f"a leading dimension of {value_shown(name)}: the tensors are {tensors}"
                )
            indices = known[name].indices
            outer = indices.index(matrix(known[name], self.problem.gemm)[0])
            row = prod(self.extent(letter) for letter in indices[outer + 1 :])
            if type(size) is not int or not row <= size <= INT_MAX:
                raise UsageError(
                    f"{ld_name(name)} = {value_shown(size)}: a row of {name} has {row} elements, "
                    f"and a leading dimension is at least that and at most {INT_MAX}"
                )


def _check_texts(given: Mapping[str, object]) -> None:
    """Raises ``UsageError`` for an argument that is not text; a shape is easily passed first."""
    for name, value in given.items():
        if not isinstance(value, str):
            is_shape = name == "gemm" and value is not None
            hint = f"; pass a shape as shape={value_shown(value)}" if is_shape else ""
            raise UsageError(f"{name}= is a text, not {value_shown(value)}{hint}")


def _problem(
    gemm: str,
    dtype: str,
    epilogue: str | None,
    kernel: str,
    same_bits: str | None,
    gpu: Gpu,
) -> Schedule:
    """The schedule of these lines, without directives."""
    given = {"gemm": gemm, "dtype": dtype, "epilogue": epilogue, "same_bits": same_bits}
    for what, text in ((what, text or "") for what, text in given.items()):
        if "\n" in text or "#" in text:
            raise UsageError(f"{what} is one line without a comment, not {value_shown(text)}")
    lines = [f"gemm {gemm.strip()}"]
    types = _types(gemm, dtype.strip())
    if types:
        lines.append(f"dtype {types}")
    if kernel != "gemm":
        lines.append(f"kernel {kernel}")
    # sm_80 is the default of schedules; types that it lacks need a newer one.
    since = max([80, *(SINCE[each] for each in re.split(r"[\s=]+", types) if each in SINCE)])
    lines.append(f"target {f'sm_{since}' if has(gpu.arch, since) else gpu.target}")
    if same_bits is not None:
        lines.append(f"require same_bits over {same_bits.strip()}")
    if epilogue is not None:
        lines.append(f"fuse_epilogue {epilogue.strip()}")
    found = parse_schedule(Source("".join(f"{line}\n" for line in lines), "<request>"))
    dtypes = dict(found.dtypes)
    atom = _atom((dtypes[found.gemm.a.tensor], dtypes[found.gemm.b.tensor], dtypes["acc"]), gpu)
    if atom is None or has(found.target, SINCE.get(atom, 0)):
        return found
    return replace(found, target=f"sm_{SINCE[atom]}")


def _atom(types: Product, gpu: Gpu) -> Atom | None:
    """The first of mma.sync that multiplies them on the GPU."""
    better = types[2] != "f64" or gpu.tensor_lanes("f64") > gpu.double_lanes
    if better and all(offers(gpu.arch, each) for each in types):
        for atom in VIA["mma"]:
            if types in ATOMS[atom].products and offers(gpu.arch, atom):
                return atom
    return None


def gemm_of(gemm: str) -> Gemm:
    """The checked line; raises ``ScheduleError``."""
    return parse_schedule(Source(f"gemm {gemm.strip()}\n", "<request>")).gemm


def _types(gemm: str, dtype: str) -> str:
    """The text after ``dtype`` in a schedule, empty if all is f32."""
    if dtype not in BYTES:
        return dtype
    if dtype == "f32":
        return ""
    line = gemm_of(gemm)
    acc = " acc=f64" if dtype == "f64" else ""
    if DTYPES[dtype].results:
        return dtype
    return " ".join(f"{x.tensor}={dtype}" for x in (line.a, line.b, line.c)) + acc

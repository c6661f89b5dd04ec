"""The signature of an operator, derived from its schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gemmgen.base.errors import CallError
from gemmgen.base.record import record
from gemmgen.ir.blocked_letters import block, count, plain
from gemmgen.ir.epilogue_arithmetic import reads_unscaled
from gemmgen.ir.expr import Element, Var, walk
from gemmgen.ir.problem import Problem, Tensor
from gemmgen.pipeline import build
from gemmgen.schedule.model import Schedule

DEFAULTS = {"alpha": 1.0, "beta": 0.0}


@record
class Signature:
    """The arguments in the order of the operator's schema, and the output.

    ``tensors`` are the two inputs in the order of the gemm line, their scales, the epilogue's own
    tensors in the order of the expression, and C if the epilogue reads it for any beta.
    ``numbers`` have no default.  ``old`` is C if it is read in ``beta * C`` alone: it may be left
    out if beta is 0.  ``defaulted`` are alpha and beta.
    """

    problem: Problem
    tensors: tuple[Tensor, ...]
    numbers: tuple[str, ...]
    old: Tensor | None
    defaulted: tuple[str, ...]
    output: Tensor

    @staticmethod
    def of(schedule: Schedule) -> Signature:
        problem = build(schedule).problem
        output = problem.c
        read, names = _reads(problem)
        scales = (scaling.tensor for scaling in problem.scales)
        given = [problem.a, problem.b, *scales, *(x for x in read if x.name != output.name)]
        optional = output in read and not reads_unscaled(problem.epilogue, output.name)
        if output in read and not optional:
            given.append(output)
        return Signature(
            problem,
            tuple(given),
            tuple(name for name in names if name not in DEFAULTS),
            output if optional else None,
            tuple(name for name in DEFAULTS if name in names),
            output,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """All arguments in order."""
        old = (self.old.name,) if self.old else ()
        return (*(p.name for p in self.tensors), *self.numbers, *old, *self.defaulted)

    @property
    def all_tensors(self) -> tuple[Tensor, ...]:
        return (*self.tensors, self.old) if self.old else self.tensors

    @property
    def scalars(self) -> tuple[str, ...]:
        return (*self.numbers, *self.defaulted)

    @property
    def defaults(self) -> tuple[float | None, ...]:
        """The default values of the last arguments, in order."""
        old = (None,) if self.old else ()
        return (*old, *(DEFAULTS[name] for name in self.defaulted))

    def schema(self) -> str:
        """``(Tensor A, Tensor B, Tensor bias, Tensor? C=None, float alpha=1.0) -> Tensor``."""
        parts = [f"Tensor {argument.name}" for argument in self.tensors]
        parts += [f"float {name}" for name in self.numbers]
        parts += [f"Tensor? {self.old.name}=None"] if self.old else []
        parts += [f"float {name}={DEFAULTS[name]}" for name in self.defaulted]
        return f"({', '.join(parts)}) -> Tensor"

    def extents(self, shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
        """Each letter's extent, from the shapes of the tensors by name; sizes may be symbols.

        Raises ``CallError`` for a wrong number of dimensions and for shapes that disagree.
        """
        found: dict[str, int] = {}
        first: dict[str, str] = {}
        for argument in self.all_tensors:
            shape = shapes.get(argument.name)
            if shape is None:
                continue
            rank = len(argument.letters)
            if len(shape) != rank:
                raise CallError(f"{argument.text} has {rank} dimensions, not {len(shape)}")
            for letter, size in zip(argument.letters, shape, strict=True):
                if block(letter) > 1:
                    continue
                if letter not in found:
                    found[letter], first[letter] = size, argument.text
                elif found[letter] != size:
                    raise CallError(
                        f"{letter} has {size} values in {argument.text}, but {found[letter]} in "
                        f"{first[letter]}"
                    )
        for argument in self.all_tensors:
            _check_blocks(argument, shapes.get(argument.name, ()), found)
        return found


def _check_blocks(argument: Tensor, shape: Sequence[int], extents: Mapping[str, int]) -> None:
    """Raises ``CallError`` if a tensor of scales has not one for each block."""
    for letter, size in zip(argument.letters, shape, strict=False):
        elements, extent = block(letter), extents.get(plain(letter))
        if elements > 1 and extent is not None and count(letter, extent) != size:
            raise CallError(
                f"{argument.text} has {size} blocks along {plain(letter)}, but {extent} elements "
                f"are {count(letter, extent)} blocks of {elements}"
            )


def _reads(problem: Problem) -> tuple[list[Tensor], list[str]]:
    """The tensors and the scalars of the epilogue, each once, in the order of the expression."""
    tensors: dict[str, Tensor] = {}
    scalars: dict[str, None] = {}
    letters = {*problem.letters, "acc"}
    for part in walk(problem.epilogue):
        match part:
            case Element(name, indices):
                found = tuple(index.name for index in indices if isinstance(index, Var))
                tensors.setdefault(name, Tensor(name, found, problem.dtype(name)))
            case Var(name) if name not in letters:
                scalars.setdefault(name)
            case _:
                pass
    return list(tensors.values()), list(scalars)

"""The operator of PyTorch for a problem, and its arguments."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from gemmgen.calling.scalars import number
from gemmgen.functions.problems import MatmulProblem
from gemmgen.ir.decompositions import Fast, allowed_terms
from gemmgen.ir.param import Param
from gemmgen.schedule.formatting import format_schedule
from gemmgen.torch.operator import Defined, define

NAMESPACE = "gemmgen"


def operator_of(problem: MatmulProblem, fast: Fast) -> Defined:
    """The operator, defined when a problem is first multiplied; raises ``UsageError`` for a
    ``fast`` that terms do not have."""
    allowed_terms(fast)
    text = format_schedule(problem.schedule)
    digest = hashlib.sha256(f"{fast} {text}".encode()).hexdigest()[:16]
    return define(f"{NAMESPACE}::matmul_{digest}", problem.schedule, own=False, fast=fast)


def ordered_arguments(
    names: Sequence[str],
    defaults: Sequence[object],
    tensors: Mapping[str, object],
    numbers: Mapping[str, object],
) -> list[object]:
    """An operator's arguments, in the order of ``names``, whose last ones have ``defaults``."""
    known: dict[str, object] = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
    known.update(tensors)
    known.update(numbers)
    return [known[name] for name in names]


def checked_numbers(numbers: Mapping[str, object]) -> dict[str, float]:
    """Python's numbers of a call's; ``CallError`` for what is none."""
    return {name: number(Param(name, "scalar", dtype="f64"), x) for name, x in numbers.items()}

"""The canonical text of a schedule: one text per set of facts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gemmgen.base.source import indexed
from gemmgen.ir.exprtext import format_expression
from gemmgen.schedule.roles import tensors

if TYPE_CHECKING:
    from gemmgen.schedule.model import Access, Assume, Directive, Gemm, Operand, Require, Schedule

COLUMN = 16
"""The column at which operands and arguments begin."""


def format_schedule(schedule: Schedule) -> str:
    """The text that parses back to ``schedule``; its first line is the ``gemm`` line."""
    plain = type(schedule)(schedule.gemm)
    lines = [f"gemm {format_gemm(schedule.gemm)}"]
    if schedule.kernel != plain.kernel:
        lines.append(f"kernel {schedule.kernel}")
    known = {*tensors(schedule.gemm).values(), "acc"}
    types = [f"{n}={dtype}" for n, dtype in schedule.dtypes if dtype != "f32" or n not in known]
    if types:
        lines.append(f"dtype {' '.join(types)}")
    if schedule.target != plain.target:
        lines.append(f"target {schedule.target}")
    lines += [_assume(assume) for assume in schedule.assumes]
    lines += [_require(require) for require in schedule.requires]
    if schedule.same_bits:
        lines.append(f"require same_bits over {' '.join(schedule.same_bits.letters)}")
    lines += [format_directive(directive) for directive in schedule.directives]
    if schedule.epilogue:
        lines.append(f"fuse_epilogue {format_expression(schedule.epilogue.expression)}")
    words = (line.partition(" ") for line in lines)
    return "".join(aligned(word, rest) + "\n" for word, _, rest in words)


def format_directive(directive: Directive) -> str:
    """A directive in one line, single-spaced: ``tile m=128 n=128 k=8``."""
    operands = [_operand(operand) for operand in directive.operands]
    arguments = [f"{a.name}={a.value}" for a in directive.arguments]
    return " ".join([directive.name, *operands, *arguments])


def format_sizes(sizes: Iterable[tuple[str, int]]) -> str:
    """``m=128 n=128``."""
    return " ".join(f"{letter}={size}" for letter, size in sizes)


def aligned(word: str, rest: str) -> str:
    """A statement's line: its first word padded to the common column."""
    return f"{word:<{COLUMN - 1}} {rest}".rstrip()


def format_access(access: Access) -> str:
    """``A[m, k]``."""
    return indexed(access.tensor, access.indices)


def format_gemm(gemm: Gemm) -> str:
    """``C[m, n] = A[m, k] * B[k, n]``, or ``(A[m, k] * SA[k/128, m]) * ...``."""
    scales = {scale.of: indexed(scale.tensor, scale.indices) for scale in gemm.scales}
    c, a, b = (format_access(access) for access in (gemm.c, gemm.a, gemm.b))
    if gemm.a.tensor in scales:
        a = f"({a} * {scales[gemm.a.tensor]})"
    if gemm.b.tensor in scales:
        b = f"({b} * {scales[gemm.b.tensor]})"
    return f"{c} = {a} * {b}"


def _operand(operand: Operand) -> str:
    if operand.indices is not None:
        return indexed(operand.tensor, operand.indices)
    return operand.tensor + (f".{operand.hop}" if operand.hop else "")


def _assume(assume: Assume) -> str:
    if assume.divisor is not None:
        return f"assume {assume.name} % {assume.divisor} == 0"
    return f"assume {assume.name} == {assume.equals}"


def _require(require: Require) -> str:
    limit = str(require.limit)
    if require.quantity == "shared" and require.limit % 1024 == 0 and require.limit:
        limit = f"{require.limit // 1024}KiB"
    elif require.quantity == "shared" and require.limit:
        limit += "B"
    return f"require {require.quantity} {require.op} {limit}"

"""The declared IR as text and back: ``parse_program(print_program(p)) == p``.

One fact a line, so that the difference of two programs is small.  Defaults are left out; what
stands after ``#`` are the origins of the line's node, the directives that shaped it, and part of
the IR.  A spread's axis reads ``m=1x2x16x4``: warps x pieces x lanes x width; ``atom=wmma`` has a
warp in place of each thread, and with ``by=warp`` each warp owns a sub-tile.  A buffer's letters
are in storage order, the last one contiguous.
With batches, ``work b m=8 n=32`` names the letters that number the blocks' matrices.

    program C[m, n] = A[m, k] * B[k, n]
    kernel gemm
      work m=8 n=32
      global A[m, k] f32
      global B[k, n] f32
      global C[m, n] f32
      register acc[m=8, n=32] f32 spread m=1x1x8x1 n=1x1x32x1 x=n
      init acc
      loop k
        acc += A * B
      C = alpha * acc + beta * C[m, n]
"""

from __future__ import annotations

from collections.abc import Iterator

from gemmgen.ir.exprtext import format_expression
from gemmgen.ir.nodes import (
    AxisSpread,
    Bounds,
    Buffer,
    Contract,
    Copy,
    Fact,
    Init,
    Kernel,
    Loop,
    Map,
    Origins,
    Pipeline,
    Program,
    Spread,
    Statement,
    Swizzle,
    Work,
)
from gemmgen.ir.problem import Problem, Tensor, default_epilogue
from gemmgen.ir.textparser import parse_program
from gemmgen.schedule.model import Schedule

__all__ = ["parse_program", "print_program"]


def print_program(program: Program) -> str:
    """The whole program, ended by a newline."""
    lines = list(_problem(program))
    for kernel in program.kernels:
        lines += _kernel(kernel)
    return "\n".join(lines) + "\n"


def _problem(program: Program) -> Iterator[str]:
    problem = program.problem
    c, a, b = (_tensor(t) for t in (problem.c, problem.a, problem.b))
    yield f"program {c} = {a} * {b}"
    if program.target != Schedule().target:
        yield f"  target {program.target}"
    types = [(t.name, t.dtype) for t in (problem.a, problem.b, problem.c)]
    types = [*types, ("acc", problem.accumulate)]
    said = [f"{name}={dtype}" for name, dtype in types if dtype != "f32"]
    said += [f"{name}={dtype}" for name, dtype in problem.others]
    if said:
        yield f"  dtype {' '.join(said)}"
    for fact in program.facts:
        yield f"  assume {_fact(fact)}"
    if not _has_default_epilogue(problem):
        yield f"  epilogue {format_expression(problem.epilogue)}"


def _has_default_epilogue(problem: Problem) -> bool:
    return problem.epilogue == default_epilogue(problem.c)


def _tensor(tensor: Tensor) -> str:
    return f"{tensor.name}[{', '.join(tensor.letters)}]"


def _fact(fact: Fact) -> str:
    if fact.equals is not None:
        assert fact.divisor is None
        return f"{fact.name} == {fact.equals}"
    return f"{fact.name} % {fact.divisor} == 0"


def _kernel(kernel: Kernel) -> Iterator[str]:
    yield f"kernel {kernel.name}"
    yield "  " + _work(kernel.work)
    if kernel.bounds != Bounds():
        yield "  " + _line("bounds", kernel.bounds.origins, blocks=(kernel.bounds.blocks, 0))
    for buffer in kernel.buffers:
        yield "  " + _buffer(buffer)
    for statement in kernel.body:
        yield from ("  " + line for line in _statement(statement))


def _work(work: Work) -> str:
    tile = " ".join((*work.batch, *(f"{letter}={size}" for letter, size in work.tile)))
    return _line(
        f"work {tile}",
        work.origins,
        raster=(work.raster, 1),
        parts=(work.parts, 1),
        reduce=(work.reduce, "ordered"),
        groups=(work.groups, 1),
    )


def _buffer(buffer: Buffer) -> str:
    sizes = dict(buffer.shape)
    letters = [x if sizes[x] is None else f"{x}={sizes[x]}" for x in buffer.letters]
    text = f"{buffer.space.value} {buffer.name}[{', '.join(letters)}] {buffer.dtype}"
    text += _options(pad=(buffer.pad, 0), stages=(buffer.stages, 1)) + _swizzle(buffer.swizzle)
    if buffer.spread:
        text += f" spread {_spread(buffer.spread)}"
    return _line(text, buffer.origins)


def _swizzle(swizzle: Swizzle | None) -> str:
    if swizzle is None:
        return ""
    return f" swizzle={swizzle.by} every={swizzle.every} chunk={swizzle.chunk}"


def _spread(spread: Spread) -> str:
    axes = (*spread.axes, *((spread.k_layout,) if spread.k_layout else ()))
    return " ".join((*(_axis(axis) for axis in axes), f"x={spread.x}")) + _options(
        atom=(spread.atom, "fma"), by=("warp" if spread.by_warp else "", "")
    )


def _axis(axis: AxisSpread) -> str:
    return f"{axis.letter}={axis.warps}x{axis.pieces}x{axis.lanes}x{axis.width}"


def _statement(statement: Statement) -> Iterator[str]:
    match statement:
        case Init(dst):
            yield f"init {dst}"
        case Copy() | Contract():
            yield _operation(statement)
        case Map(dst, value, width, origins, through):
            text = f"{dst} = {format_expression(value)}"
            yield _line(text, origins, width=(width, 1), through=(through or "", ""))
        case Loop(letter, body, unroll, origins, step):
            yield _line(f"loop {letter}", origins, step=(step, 1), unroll=(unroll, 0))
            yield from ("  " + _operation(operation) for operation in body)
        case Pipeline(letter, step, produce, consume, unroll, residue, origins):
            options = {"unroll": (unroll, 1), "residue": (residue, "last")}
            yield _line(f"pipeline {letter} by {step}", origins, **options)
            yield from ("  produce " + _operation(copy) for copy in produce)
            for loop in consume:
                yield from ("  " + line for line in _statement(loop))


def _operation(operation: Copy | Contract) -> str:
    match operation:
        case Copy(dst, src, width, mode, origins):
            return _line(f"{dst} = {src}", origins, width=(width, 1), mode=(mode, "registers"))
        case Contract(acc, a, b, order, atom, origins):
            text = f"{acc} += {a} * {b}"
            return _line(text, origins, order=(order, "rows"), atom=(atom, "fma"))


def _line(text: str, origins: Origins, **options: tuple[int | str, int | str]) -> str:
    assert not any("; " in origin or "\n" in origin for origin in origins), origins
    return text + _options(**options) + (f"   # {'; '.join(origins)}" if origins else "")


def _options(**options: tuple[int | str, int | str]) -> str:
    """The options that differ from their defaults; each is given as (value, default)."""
    return "".join(f" {name}={value}" for name, (value, usual) in options.items() if value != usual)

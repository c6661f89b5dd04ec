"""Expansion of whole kernels: each statement by its mechanism."""

from __future__ import annotations

from gemmgen.expand.epilogue_store import epilogue_drain, epilogue_store
from gemmgen.expand.inner_loop import steps_over_problem
from gemmgen.expand.pipeline_async import AsyncPipeline
from gemmgen.expand.pipeline_lanes import LanePipeline
from gemmgen.expand.pipeline_registers import RegisterPipeline
from gemmgen.expand.pipeline_roles import RolePipeline
from gemmgen.expand.pipeline_staged import StagedPipeline
from gemmgen.expand.pipeline_tma import TmaPipeline
from gemmgen.expand.pipeline_warpgroups import GroupPipeline, GroupRolePipeline
from gemmgen.expand.split import reduction
from gemmgen.expand.warp_roles import before_leaving, with_producers
from gemmgen.ir.atoms import ATOMS
from gemmgen.ir.control import Block
from gemmgen.ir.edit import contraction, copy_outward, pipeline_of
from gemmgen.ir.expanded import (
    ExpandedKernel,
    ExpandedProgram,
    MultiplyAgain,
    Tiles,
    Timed,
    Transfer,
    Unscale,
)
from gemmgen.ir.expr import Int
from gemmgen.ir.instruction import instruction
from gemmgen.ir.nodes import (
    Contract,
    Copy,
    CopyMode,
    Init,
    Kernel,
    Loop,
    Map,
    Pipeline,
    Program,
    Statement,
)

MECHANISMS: dict[CopyMode, type[StagedPipeline]] = {
    "registers": RegisterPipeline,
    "cp_async": AsyncPipeline,
    "tma": TmaPipeline,
}
"""The expansion of each way of copying tiles into shared memory."""
IN_GROUPS: dict[CopyMode, type[StagedPipeline]] = {**MECHANISMS, "tma": GroupPipeline}
"""The same where asynchronous groups of instructions multiply the tiles."""


def expand(program: Program) -> ExpandedProgram:
    """The program with its operations in time."""
    kernels = tuple(_kernel(program, kernel) for kernel in program.kernels)
    return ExpandedProgram(program.problem, program.target, program.splits, kernels, program.facts)


def _kernel(program: Program, kernel: Kernel) -> ExpandedKernel:
    body: list[Timed] = []
    for statement in kernel.body:
        body.extend(_statement(program, kernel, statement))
    tiles = Tiles(tuple(body), before=_before_tiles(program, kernel))
    block = (tiles, *epilogue_drain(kernel))
    if kernel.producers.warpgroups:
        return ExpandedKernel(kernel, with_producers(program, kernel, block))
    return ExpandedKernel(kernel, block)


def _before_tiles(program: Program, kernel: Kernel) -> tuple[Timed, ...]:
    staged = _staged_of(program, kernel)
    return staged.before_tiles() if staged else ()


def _staged_of(program: Program, kernel: Kernel) -> StagedPipeline | None:
    """The kernel's pipeline, if it has one through stages."""
    pipeline = pipeline_of(kernel)
    if pipeline is None or kernel.spread.holding == "lanes":
        return None
    return _staged(program, kernel, pipeline)


def _staged(program: Program, kernel: Kernel, pipeline: Pipeline) -> StagedPipeline:
    """The pipeline by the mechanism that expands it."""
    in_groups = kernel.spread.holding == "warpgroup"
    if kernel.producers.warpgroups:
        mechanism = GroupRolePipeline if in_groups else RolePipeline
    else:
        mechanism = (IN_GROUPS if in_groups else MECHANISMS)[_mode(pipeline)]
    return mechanism(program, kernel, pipeline)


def _launched(kernel: Kernel) -> tuple[Timed, ...]:
    """After the accumulators: the dependent kernel may launch once SM resources are free, and waits
    for what is stored."""
    if not kernel.work.overlap:
        return ()
    origins = tuple(x for x in kernel.work.origins if x == "overlap_launch")
    return (
        Block(
            "the dependent kernel may start: it waits before it reads C",
            origins,
            (instruction("launch_dependents"),),
        ),
    )


def _again(kernel: Kernel) -> tuple[Timed, ...]:
    """After the accumulators: recompute those that are not finite, without parts."""
    contract = contraction(kernel)
    if ATOMS[contract.atom].splits is None:
        return ()
    origins = tuple(x for x in contract.origins if x.split()[0] == "decompose")
    note = "recompute non-finite results in f32: splitting inf yields NaN"
    return (Block(note, origins, (MultiplyAgain(contract),)),)


def _unscaled(program: Program, kernel: Kernel) -> tuple[Timed, ...]:
    """After the accumulators: undo the scales of what a pre-pass has split."""
    if not any(split.scaled and kernel.has(split.dst) for split in program.splits):
        return ()
    contract = contraction(kernel)
    origins = tuple(x for x in contract.origins if x.split()[0] == "decompose")
    problem = program.problem
    note = f"undo the scales of the rows of {problem.a.name} and the columns of {problem.b.name}"
    return (Block(note, origins, (Unscale(contract),)),)


def _mode(pipeline: Pipeline) -> CopyMode:
    """How the pipeline's tiles are copied, which is the same for all."""
    modes: set[CopyMode] = {copy.mode for copy in pipeline.produce} or {"registers"}
    (mode,) = modes
    return mode


def _statement(program: Program, kernel: Kernel, statement: Statement) -> tuple[Timed, ...]:
    outward = copy_outward(kernel)
    match statement:
        case Pipeline():
            if kernel.spread.holding == "lanes":
                return LanePipeline(program, kernel, statement).expand()
            steps = _staged(program, kernel, statement).expand()
            reduced = (*before_leaving(kernel), *reduction(kernel))
            unscaled = _unscaled(program, kernel)
            return (*steps, *_launched(kernel), *reduced, *unscaled, *_again(kernel))
        case Loop():
            note = f"main loop along {program.problem.extent(statement.letter)}"
            steps = (Block(note, (), steps_over_problem(program, kernel, statement)),)
            return (*steps, *_launched(kernel))
        case Init() if staged := _staged_of(program, kernel):
            return staged.zeroed(statement)
        case Map() if outward:
            return epilogue_store(kernel, statement, outward)
        case Copy():
            return () if statement == outward else (Transfer(statement, Int(0)),)
        case Contract():
            raise AssertionError("a contraction is in a loop over its letter")
        case _:
            return (statement,)

"""The multiply-adds that a launch executes, including those of padding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from gemmgen.ir.control import Block
from gemmgen.ir.edit import pipeline_of
from gemmgen.ir.lowered import LoweredKernel
from gemmgen.ir.nodes import Program
from gemmgen.ir.thread_code import Leave, Node


def multiply_adds(
    program: Program, lowered: LoweredKernel, values: Mapping[str, int | float], blocks: int
) -> int:
    """The multiply-adds of all threads; edge tiles, along k too, are computed as whole tiles."""
    interface = lowered.interface
    depth = int(values[interface.extent(program.problem.k)])
    if any(isinstance(node, Leave) for node in outside_loops(lowered.body)):
        return depth * prod(int(values[name]) for name in interface.shaping())
    pipeline = pipeline_of(program.main)
    if pipeline is not None:
        depth = -(-depth // pipeline.step) * pipeline.step
    return blocks // interface.parts * prod(size for _, size in interface.tiles) * depth


def outside_loops(body: tuple[Node, ...]) -> Iterator[Node]:
    """The statements of a kernel outside its loops."""
    for node in body:
        yield node
        if isinstance(node, Block):
            yield from outside_loops(node.body)

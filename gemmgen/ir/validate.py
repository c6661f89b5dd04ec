"""Is a declared program well formed?  A table of rules.

Passes refuse what a user may not ask for; what they give must satisfy these rules, so a broken one
is a bug of ours, and the error names the kernel and the node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gemmgen.ir import atomrules, bufferrules, copyrules, rules
from gemmgen.ir.nodes import Kernel, Program

Rule = Callable[[Program, Kernel], Iterator[str]]

FORM: tuple[Rule, ...] = (
    rules.names_are_unique,
    rules.used_buffers_are_declared,
    bufferrules.extents_are_those_of_the_space,
    bufferrules.spreads_cover_register_tiles,
)
"""Names and shapes: what the rules of use look up."""

USE: tuple[Rule, ...] = (
    rules.declared_buffers_are_used,
    rules.work_tiles_the_output,
    rules.bounds_and_loops_are_whole,
    bufferrules.roles_are_those_of_the_operations,
    bufferrules.planes_are_split_once,
    bufferrules.global_buffers_are_the_problems,
    bufferrules.pads_and_stages_have_a_place,
    bufferrules.swizzles_permute_rows,
    bufferrules.boxes_land_as_tiles_lie,
    bufferrules.fragments_are_distributed_like_the_accumulator,
    rules.one_contraction_in_the_first_kernel,
    rules.the_contraction_sums_over_k,
    *copyrules.RULES,
    rules.expressions_know_their_names,
    atomrules.atoms_find_their_pieces,
    atomrules.fragments_lie_in_aligned_lines,
    atomrules.operands_lie_along_k,
    atomrules.promotions_end_whole_steps,
    atomrules.sums_leave_through_shared_memory,
)


class IRError(AssertionError):
    """A malformed program: a bug of the pass that made it."""


def verify(program: Program) -> None:
    """Raise ``IRError`` with every broken rule; return if the program is well formed."""
    for table in (FORM, USE):
        broken = [
            f"kernel {kernel.name}: {message}"
            for kernel in program.kernels
            for rule in table
            for message in rule(program, kernel)
        ]
        if broken:
            raise IRError("\n".join(broken))

"""An explanation in words and tables, as sections that any printer can lay out."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from gemmgen.analyze.explain import Explanation
from gemmgen.analyze.memory_tables import global_memory, pads_tried, shared_memory
from gemmgen.analyze.operation_counts import Unfused
from gemmgen.analyze.resource_tables import resources_table, roofline_table
from gemmgen.analyze.resources import Waves
from gemmgen.analyze.section import Section
from gemmgen.analyze.shared_strips import SharedStrips
from gemmgen.base.units import numeral
from gemmgen.gpu.gpus import GPC
from gemmgen.ir.decompositions import DECOMPOSITIONS
from gemmgen.ir.dtypes import DType
from gemmgen.ir.edit import copies
from gemmgen.ir.tensor_core_rules import SumRule
from gemmgen.summation.order_text import TITLE, rows


def _sum_rule(explanation: Explanation) -> SumRule | None:
    return explanation.kernel.lowered.interface.arithmetic.rule


def report(explanation: Explanation) -> tuple[Section, ...]:
    """The report, section by section."""
    shared = [t for t in explanation.traffic if t.counts.phases]
    sections = [
        _work(explanation),
        Section(TITLE, (), rows(explanation.summation, _sum_rule(explanation))),
        _formulas(explanation),
        global_memory([t for t in explanation.traffic if not t.counts.phases], _types(explanation)),
    ]
    if shared:
        sections += [shared_memory(shared, explanation.joined), pads_tried(explanation.pads)]
    return (*sections, resources_table(explanation), roofline_table(explanation))


def _types(e: Explanation) -> dict[str, DType]:
    return {p.name: p.dtype for p in e.kernel.lowered.interface.params}


def _work(e: Explanation) -> Section:
    m, n, k, *batches = e.shape
    problem = e.kernel.program.problem
    c, named = problem.c.name, zip(problem.letters, e.shape, strict=True)
    shape = " ".join(f"{letter}={size}" for letter, size in named)
    x, y = e.kernel.lowered.interface.block
    useful = prod(e.shape) / e.fmas
    of_each = f", {' x '.join(map(str, batches))} matrices" if batches else ""
    rows = [
        ("shape", f"{shape}: {c} is {m} x {n}{of_each}, K = {k}; beta = {numeral(e.beta)}"),
        ("work", f"{e.roofline.flops:,} operations (2 a multiply-add)"),
        *_operations(e),
        ("launch", f"{e.waves.launched:,} blocks of {x} x {y} threads{_walk(e.waves)}"),
    ]
    if e.shared is not None:
        rows.append(("order", _order(e, e.shared)))
    cluster = e.kernel.lowered.interface.cluster
    if cluster:
        sides = " x ".join(map(str, cluster))
        rows += [
            ("clusters", f"of {sides} blocks, each of which loads its share of a tile"),
            ("", f"{e.waves.per_wave // prod(cluster)} at a time, estimated: {_held(e)}"),
        ]
    if e.kernel.lowered.interface.attribute == "dependent_launch":
        rows.append(
            ("", "they start before the preceding kernel has completed, and wait for it (PDL)")
        )
    rows += [("L2", f"{name} is the {when} to leave the cache") for name, when in _hints(e)]
    parts = e.kernel.lowered.interface.parts
    if parts > 1:
        rows.append(
            (
                "parts",
                f"{parts} blocks split the K of each tile of {c}; the last adds their partial sums",
            )
        )
    rows += _accuracy(e)
    if useful < 1:
        rows.append(
            ("ragged edges", f"{useful:.1%} of the multiply-adds are of {c}, the rest padding")
        )
    return Section("shape and launch", (), tuple(rows))


def _held(e: Explanation) -> str:
    """The clusters that fit on the GPU."""
    return (
        f"each lies in one group of up to {GPC} SMs (GPC), so {e.waves.sms} of the "
        f"{e.gpu.sms} SMs have blocks"
    )


def _walk(waves: Waves) -> str:
    """How many tiles each block computes, unless it is one."""
    least, most = waves.of_a_block
    if most == 1:
        return ""
    share = f"{least}" if least == most else f"{least} or {most}"
    return f", each of which computes {share} of the {waves.blocks:,} tiles"


def _hints(e: Explanation) -> Iterator[tuple[str, str]]:
    """The operands whose copies have a hint for the L2 cache."""
    for copy in copies(e.kernel.program.main):
        if copy.evict != "normal":
            yield copy.src, copy.evict


def _order(e: Explanation, shared: SharedStrips) -> str:
    """What the blocks of a wave share."""
    at_once, problem = min(e.waves.per_wave, e.waves.blocks), e.kernel.program.problem
    return (
        f"{at_once:,} blocks at once read {shared.a:.1f} strips of {problem.a.name} and "
        f"{shared.b:.1f} of {problem.b.name} on average, {shared.a + shared.b:.1f} in all; "
        f"row by row {shared.row_by_row:.1f}"
    )


def _accuracy(e: Explanation) -> Iterator[tuple[str, str]]:
    """The error bound of split f32, at this K."""
    arithmetic, problem = e.kernel.lowered.interface.arithmetic, e.kernel.program.problem.written
    if arithmetic.products > 1:
        units, (a, b) = arithmetic.split_share(e.shape[2]) * 2**24, (problem.a, problem.b)
        beyond = ""
        if arithmetic.into and DECOMPOSITIONS[arithmetic.into].scaled:
            beyond = (
                f", and {e.shape[2]:,} * 2^-38 of the largest |{a.name}| of its {problem.m} times "
                f"the largest |{b.name}| of its {problem.n}"
            )
        yield (
            "accuracy",
            f"split f32, promoted every {arithmetic.terms} terms: an error is at most {units:,.0f} "
            f"* 2^-24 of the sum of |{a.name} * {b.name}|{beyond}",
        )


def _operations(e: Explanation) -> Iterator[tuple[str, str]]:
    """The operations one by one, and what C would be read and written without fusion."""
    work, problem, depth = e.operations, e.kernel.program.problem.written, e.shape[2]
    a, b, c = problem.a.name, problem.b.name, problem.c.name
    yield (
        "",
        f"{work.product:,} = {work.product_formula} of {a} {b}: {depth} multiplications and "
        f"{depth - 1} additions for an element of {c}",
    )
    if work.epilogue:
        yield (
            "",
            f"{work.epilogue:,} = {work.epilogue_formula} more for {work.expression}: "
            f"{work.spelled}; in all {work.total:,} = {work.formula}",
        )
    if e.unfused is not None:
        yield ("fusion", saved_by_fusion(e.unfused, c))


def saved_by_fusion(unfused: Unfused, c: str) -> str:
    """What the epilogue's operations would read and write in their own kernels."""
    half, names = unfused.elements // 2, ", ".join(unfused.names)
    one = f"{half // unfused.kernels:,}"
    each = "" if unfused.kernels == 1 else f"; one kernel for all of them {one} and {one}"
    return (
        f"elementwise kernels ({names}) would add {half:,} reads and {half:,} writes of {c}, "
        f"{unfused.bytes / 1e6:,.1f} MB{each}"
    )


def _formulas(e: Explanation) -> Section:
    rows = tuple(
        (f.name, f"{f.counted:,}", f.text, f"{f.value:,.0f}", f"{f.ratio:.3f}") for f in e.formulas
    )
    return Section(
        "elements, counted thread by thread", ("", "counted", "formula", "", "ratio"), rows
    )

"""examples/spaces: points all over the space are legal, and kernels of them are right."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemmgen.base.source import Source
from gemmgen.calling.launches import Case
from gemmgen.explore.tune.legal_points import Legal, judge
from gemmgen.explore.tune.space import SearchSpace
from gemmgen.pipeline import compile_source
from gemmgen.proof.calls import Caller, landings_of
from gemmgen.proof.shapes import ring_of, tile_of
from gemmgen.sim.run import CompiledKernel

FILES = sorted((Path(__file__).parents[2] / "examples" / "spaces").glob("*.sched"))
LOOKED_AT, RUN = 60, 2
LEAST = 2000
"""Points that a space is worth searching with."""


@pytest.mark.proof
@pytest.mark.by_default("f32", "hopper")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_points_all_over_the_space_are_legal_and_right(path: Path) -> None:
    space = SearchSpace(Source(path.read_text(encoding="utf-8"), path.name))
    assert space.size >= LEAST
    step = space.size // LOOKED_AT | 1  # odd, so that every value of most sets is met
    found = [judge(space, number, [(2048, 2048, 2048)]) for number in range(0, space.size, step)]
    legal = [point for point in found if isinstance(point, Legal)]
    assert len(legal) > len(found) / 4, {point for point in found if isinstance(point, str)}
    for point in legal[:: len(legal) // RUN]:
        emitted = compile_source(Source(point.text))
        m, *_ = tile_of(emitted.program)
        shape = (m + 4, 8, 4 * (ring_of(emitted.program) // 4 + 1))
        caller = Caller(emitted)
        kernel = CompiledKernel(emitted.text, emitted.interface, checked=True)
        for landing in landings_of(emitted):
            case = Case(shape, "normal", 0.7, -1.0, landing=landing)
            complaint = caller.complaint(case, kernel)
            assert complaint is None, f"{point.settings}, {case.text()}: {complaint}"
        kernel.close()

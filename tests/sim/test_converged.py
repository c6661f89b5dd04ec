"""Lanes that come to barrier.cluster.aligned on different paths are found: the instruction does not
wait for its warp, which must have converged before."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof import cpu
from gemmgen.proof.cases import cases_of
from gemmgen.proof.outcome import Subject
from gemmgen.schedule import examples
from gemmgen.schedule.read import read_source

TESTS = Path(__file__).parents[1]
FOLDERS = (TESTS / "golden", TESTS / "mutants" / "kernels", examples.folder())
SYNC = "gg_sync_cluster() {\n    __syncwarp();\n"


def has_clusters(path: Path) -> bool:
    text = path.read_text("utf-8")
    return bool(re.search(r"^cluster\b", text, re.MULTILINE)) and "spaces" not in path.parts


CLUSTERED = {
    f"{path.parent.name}/{path.stem}": path
    for folder in FOLDERS
    for path in sorted(folder.rglob("*.sched"))
    if has_clusters(path)
}


def emitted(name: str) -> Emitted:
    return compile_source(read_source(str(CLUSTERED[name])))


@pytest.mark.by_default("golden/clusters")
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", CLUSTERED)
def test_a_warp_that_has_not_converged_is_found(name: str) -> None:
    known = emitted(name)
    assert SYNC in known.text, "mend this test"
    text = known.text.replace(SYNC, SYNC.replace("    __syncwarp();\n", ""))
    outcome = cpu.check(Subject(replace(known, text=text)))
    assert outcome.status == "failed"
    assert "divergent warp" in outcome.detail and "gg_sync_cluster();" in outcome.detail
    assert re.search(r"thread \(\d+, 0\) comes from line \d+ `gg_\w+\(", outcome.detail)


AT_THE_END = re.compile(r"(?<=\n)    gg_sync_cluster\(\);\n\}")


@pytest.mark.proof
@pytest.mark.parametrize("name", ("golden/clusters", "kernels/promote_fp8"))
def test_each_of_two_barriers_is_checked(name: str) -> None:
    """The last barrier alone: after the producer's only thread has asked for tiles."""
    known = emitted(name)
    function = known.text[known.text.index("// barrier.cluster:") :].partition("\n}\n")[0] + "\n}\n"
    bare = function.replace("gg_sync_cluster", "gg_sync_bare").replace("    __syncwarp();\n", "")
    text = known.text.replace(function, f"{function}\n{bare}", 1)
    text = AT_THE_END.sub("    gg_sync_bare();\n}", text)
    message = cpu.first_complaint(
        cpu.Caller(known), text, [case for case in cases_of(known)][:3], warn=False
    )
    assert message is not None and "gg_sync_bare();" in message
    assert re.search(r"thread \(\d+, 0\) comes from line \d+ `.*gg_", message)


@pytest.mark.proof
@pytest.mark.parametrize("wait", ("__syncwarp();", "__syncthreads();"))
def test_any_wait_for_the_warp_makes_it_converge(wait: str) -> None:
    known = emitted("golden/clusters")
    bare = known.text.replace(SYNC, SYNC.replace("    __syncwarp();\n", ""))
    text = bare.replace("    gg_sync_cluster();\n", f"    {wait}\n    gg_sync_cluster();\n")
    chosen = [case for case in cases_of(known)][:6]
    assert cpu.first_complaint(cpu.Caller(known), text, chosen) is None

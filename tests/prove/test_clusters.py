"""Clusters are walked as one block: what is proved of them, and what is unknown by name."""

from __future__ import annotations

import pytest

from gemmgen.base.source import Source
from gemmgen.pipeline import compile_source
from gemmgen.prove import proof_report
from gemmgen.prove.goals import Fact
from gemmgen.prove.prover import Proof, prove
from tests.prove import needs_z3  # noqa: F401  # skips the file without the solver

from .planting import HERE, Mistake, emitted, mistakes

SHAPE = (HERE / "schedules" / "cluster.sched").read_text(encoding="utf-8")
EXIT = "      sync_cluster []\n"


def proof_of(text: str) -> Proof:
    kernel = compile_source(Source(text))
    return prove(kernel.lowered.kernels[0], kernel.program.problem, 120.0)


@pytest.mark.by_default("m=2")
@pytest.mark.in_proof("n=2", "m=4 n=2")
@pytest.mark.parametrize("sides", ["m=2", "n=2", "m=4", "m=4 n=2"])
def test_all_facts_of_a_cluster_are_proved(sides: str) -> None:
    """Blocks of a row, of a column, and such that share no tile with some others."""
    assert proof_of(SHAPE.replace("m=2 n=2", sides)).status == "proved"


@pytest.mark.proof
def test_tensor_cores_of_two_blocks_are_proved() -> None:
    shape = (HERE / "schedules" / "wgmma.sched").read_text(encoding="utf-8")
    shape = shape.replace("n=16", "n=32").replace("stages=2", "stages=3")
    proof = proof_of(f"{shape}warp_specialize producers=1\ncluster m=2\n")
    assert proof.status == "proved", [one.reason for one in proof.outcomes]


@pytest.mark.by_default()
@pytest.mark.in_proof("m=2 n=2")
@pytest.mark.parametrize("shape", ["m=2", "n=2", "m=4", "m=2 n=2"])
def test_clusters_of_persistent_blocks_are_proved(shape: str) -> None:
    proof = proof_of(SHAPE.replace("m=2 n=2", shape) + "persistent\n")
    assert proof.status == "proved", [one.reason for one in proof.outcomes]


@pytest.mark.by_default("*depends on sizes", "*not known")
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            EXIT,
            f"      if blockIdx.x % CLUSTER == 0\n        sync_block []\n{EXIT}",
            "a barrier of some blocks of a cluster",
        ),
        (EXIT, f"      leave threadIdx.x == 1\n{EXIT}", "a return in a block of a cluster"),
        (
            EXIT,
            "      if tile_m + threadIdx.x < M\n        sync_cluster []\n",
            "a barrier under a condition of each thread",
        ),
        (
            "arrive_at [empty[stage], threadIdx.x % 32]",
            "arrive_at [empty[stage], K]",
            "an arrival at a block that depends on sizes",
        ),
        (
            "multicast_box [A_shared[stage, A_k, 0], A, full[stage], tile_m, tile_k + A_k, "
            "A_BLOCKS << rank_m * CLUSTER_N]",
            "multicast_box [A_shared[stage, A_k, 0], A, full[stage], tile_m, tile_k + A_k, K]",
            "a copy of a box to blocks that are not known",
        ),
    ],
)
def test_what_is_not_modeled_is_unknown(old: str, new: str, said: str) -> None:
    at = 1 if old == EXIT else 0
    program = Mistake("", "cluster", old, new, "races", at).planted()
    problem = emitted("cluster").program.problem
    (outcome,) = prove(program.kernels[0], problem, 60.0, ("races",)).outcomes
    assert outcome.status == "unknown" and outcome.reason.startswith(said), outcome.reason


@pytest.mark.proof
def test_a_barrier_of_some_threads_is_refuted() -> None:
    new = "      if threadIdx.x < 32\n        sync_cluster []\n"
    program = Mistake("", "cluster", EXIT, new, "barriers", 1).planted()
    fact: Fact = "barriers"
    (outcome,) = prove(
        program.kernels[0], emitted("cluster").program.problem, 60.0, (fact,)
    ).outcomes
    assert outcome.status == "refuted"
    assert outcome.reason == "some threads of the cluster do not come to its barrier"


@pytest.mark.proof
def test_a_report_names_the_block_of_the_cluster() -> None:
    """The third block copies what the first one has copied."""
    name = "a share that another block copies, too"
    (mistake,) = (one for one in mistakes() if one.name == name)
    program, problem = mistake.planted(), emitted("cluster").program.problem
    report = proof_report.examine_program(program, problem, 60.0)
    (outcome,) = (one for one in report.proof.outcomes if one.fact == "races")
    assert "B_shared[0][0][0] of block 0: thread 128 of block 2 copies" in outcome.reason
    assert outcome.finding is not None
    assert proof_report.place(report, outcome.finding).endswith("block 2, thread (128, 0)")
    facts = {one["fact"]: one for one in proof_report.as_json(report)["facts"]}
    shown = facts["races"]["counterexample"]
    assert (shown["block"], shown["thread"]) == (2, 128)

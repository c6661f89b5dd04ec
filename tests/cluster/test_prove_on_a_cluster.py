"""``gemmgen prove --scheduler``: a task for each file."""

from __future__ import annotations

import json
import os
import pickle
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from gemmgen.cli.options import load
from gemmgen.pipeline import Emitted, compile_schedule
from gemmgen.prove import cluster_proofs, proof_report
from gemmgen.prove.proof_report import ProofReport
from gemmgen.prove.second_opinion import SolversDisagree
from tests.cli.running import EXAMPLES, gemmgen
from tests.prove import needs_z3  # noqa: F401  # skips the file without the solver

from .local_workers import local_workers

NAIVE, TILED = EXAMPLES / "naive.sched", EXAMPLES / "tiled.sched"


def test_the_disagreement_of_solvers_reaches_another_process() -> None:
    wrong = pickle.loads(pickle.dumps(SolversDisagree("races", "(check-sat)")))
    assert (wrong.about, wrong.query) == ("races", "(check-sat)") and wrong.exit_code == 1


# On a cluster, whose workers import this file.


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("distributed", reason="Dask is not installed")
    with local_workers(tmp_path_factory.mktemp("dask")) as found:
        yield found


@pytest.mark.proof
def test_files_are_proved_on_workers_and_reported_in_their_order(
    address: str, tmp_path: Path
) -> None:
    done = gemmgen("prove", TILED, NAIVE, "best/deep", "--scheduler", address, "--json")
    assert done.exit_code == 3, done.stderr
    found = [(one["file"], one["status"]) for one in json.loads(done.stdout)]
    assert [status for _, status in found] == ["proved", "proved", "unknown"]
    assert [name for name, _ in found][:2] == [str(TILED), str(NAIVE)]
    kept = tmp_path / "naive.proof.json"
    done = gemmgen("prove", NAIVE, "--scheduler", address, "-o", kept)
    assert done.exit_code == 0 and "proved for all sizes" in done.stdout
    assert gemmgen("check", NAIVE, "--proof", kept).exit_code == 0


def fragile(emitted: Emitted, seconds: float, both: bool) -> ProofReport:
    """In the place of a proof: of one kernel it ends its process."""
    if emitted.schedule.text == compile_schedule(load(str(TILED))).schedule.text:
        os.kill(os.getpid(), signal.SIGKILL)
    return proof_report.examine(emitted, seconds, both)


@pytest.mark.proof
def test_a_file_that_kills_its_workers_is_lost_alone(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_proofs, "examine", fragile)
    done = gemmgen("prove", TILED, NAIVE, "--scheduler", address)
    assert done.exit_code == 3, done.stdout
    assert f"{TILED}\n  lost: its workers ended: tcp://" in done.stdout
    assert f"{NAIVE}\n  assuming" in done.stdout and "proved for all sizes" in done.stdout

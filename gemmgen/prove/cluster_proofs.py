"""Proofs of several kernels on the workers of a cluster, a task for each."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from functools import partial

from gemmgen.base.cluster_tasks import ClusterTask, TaskOutcome, TasksInOrder
from gemmgen.pipeline import Emitted
from gemmgen.prove.proof_report import ProofReport, examine, keep_proof

RunTasks = Callable[[Iterable[ClusterTask[ProofReport]]], Generator[TaskOutcome[ProofReport]]]
"""What runs tasks: ``Cluster.outcomes``."""


def proofs(
    run_tasks: RunTasks,
    kernels: Sequence[tuple[str, Emitted]],
    seconds: float,
    both: bool,
    task_seconds: float,
) -> Generator[TaskOutcome[ProofReport]]:
    """The outcomes of ``proof_report.examine`` for each kernel, in their order, each as soon as
    those before it are known; what is proved is kept here, too."""
    tasks = [
        ClusterTask(name, partial(examine, emitted, seconds, both), task_seconds)
        for name, emitted in kernels
    ]
    ordered = TasksInOrder[ProofReport]()
    with closing(run_tasks(tasks)) as outcomes:
        for outcome in outcomes:
            if outcome.value is not None:
                keep_proof(outcome.value, kernels[outcome.number][1])
            yield from ordered.after(outcome)

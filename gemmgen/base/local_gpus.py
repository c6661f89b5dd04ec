"""A Dask cluster of this machine's GPUs: a worker for each, which sees that one alone."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from gemmgen.base.dask_tasks import GPU, module, quiet


@contextmanager
def local_gpus(numbers: Sequence[str]) -> Generator[str]:
    """The scheduler's address; ``numbers`` are CUDA's of the GPUs, one for each worker.

    It is reached from this machine alone, and ends with the context.  Raises ``UsageError`` if Dask
    is not installed.
    """
    distributed = module()
    workers = {
        f"GPU {number}": {
            "cls": distributed.Nanny,
            "options": {
                "env": {"CUDA_VISIBLE_DEVICES": number},
                "nthreads": 1,
                "resources": {GPU: 1},
                "host": "127.0.0.1",
                "dashboard": False,
            },
        }
        for number in numbers
    }
    scheduler = {
        "cls": distributed.Scheduler,
        "options": {"host": "127.0.0.1", "port": 0, "dashboard": False},
    }
    # Else a worker that ends again after 15 seconds is not replaced.
    patient = {"distributed.deploy.lost-worker-timeout": "1 day"}
    with (
        quiet(),
        module("dask").config.set(patient),
        distributed.SpecCluster(workers=workers, scheduler=scheduler, silence_logs=60) as cluster,
    ):
        yield cluster.scheduler_address

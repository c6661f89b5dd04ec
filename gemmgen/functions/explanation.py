"""``explain_matmul``: what a call of ``matmul`` runs, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from gemmgen.functions.array_kinds import Array
from gemmgen.functions.call_epilogue import given
from gemmgen.functions.direct import ALIGNED, DirectCall, Plan, named_arguments, planned, viewed
from gemmgen.gpu.gpu_names import gpu_named
from gemmgen.gpu.gpus import Gpu
from gemmgen.ir.atoms import ATOMS, VIA
from gemmgen.ir.decompositions import Fast
from gemmgen.ir.dtypes import BYTES, DTYPES
from gemmgen.ir.target import runnable
from gemmgen.schedule.formatting import format_access, format_schedule
from gemmgen.schedule.model import Schedule
from gemmgen.torch.choosing import ChosenKernel
from gemmgen.torch.suggested import LEAST, suggestion


def explain_matmul(
    a: Array,
    b: Array,
    *,
    bias: Array | None = None,
    epilogue: object = None,
    out: Array | None = None,
    fast: Fast = False,
    same_bits: str | None = None,
    gpu: str | Path | Gpu | None = None,
) -> str:
    """What ``matmul`` runs for these arguments: copies, the schedule, and the reasons for it.

    >>> import numpy as np
    >>> import gemmgen
    >>> a = np.ones((512, 1031), np.float16)[:, :1024]
    >>> print(gemmgen.explain_matmul(a, a.T, gpu="H200").splitlines()[2])
    TMA is not used: rows of a begin 2062 bytes apart, and TMA takes multiples of 16.

    Nothing is launched or compiled by a compiler of CUDA.  ``gpu`` is another GPU than that of the
    arrays, ``"H200"`` or what else ``gemmgen.suggest`` takes, so that NumPy arrays tell what would
    run there.  Of ``linear`` pass ``x`` and ``weight.T``.  Raises what ``matmul`` raises for its
    arguments.
    """
    text, values = given(bias, epilogue)
    call = DirectCall.of(a, b, text, values, out, fast, same_bits, transposed=False)
    kind = call.kind
    plan = planned(call, viewed(call, kind))
    model = kind.gpu(a) if gpu is None else gpu_named(gpu)
    return "\n".join(_explained(call, plan, model))


def _explained(call: DirectCall, plan: Plan, gpu: Gpu | None) -> Iterator[str]:
    with named_arguments(call):
        choice = plan.choice(gpu)
    schedule = choice.emitted.schedule
    yield _headline(plan, schedule, gpu)
    yield from _orders(call, plan, choice)
    if gpu is None:
        yield "The CPU runs the naive kernel, compiled by g++; gpu= shows what a GPU would run."
    else:
        yield from _without_tma(call, plan, choice, gpu)
        yield from _reasons(plan, choice, gpu)
    yield ""
    yield format_schedule(schedule).rstrip("\n")


def _headline(plan: Plan, schedule: Schedule, gpu: Gpu | None) -> str:
    types = dict(schedule.dtypes)
    line = " * ".join(map(format_access, (schedule.gemm.a, schedule.gemm.b)))
    sizes = ", ".join(f"{letter} = {size}" for letter, size in plan.extents.items())
    kinds = ", ".join(dict.fromkeys(DTYPES[types[name]].name for name in "ABC"))
    where = gpu.name if gpu is not None else "the CPU"
    return f"{format_access(schedule.gemm.c)} = {line} for {sizes} of {kinds} on {where}."


def _orders(call: DirectCall, plan: Plan, choice: ChosenKernel) -> Iterator[str]:
    """Which tensors are read transposed, and which are copied."""
    for name, order in choice.orders:
        strides = plan.views[name].strides
        if order is not None:
            verb = "written" if name == "C" else "read"
            yield f"{call.shown(name)} is {verb} in place, transposed: its strides are {strides}."
        else:
            yield (
                f"{call.shown(name)} is copied in each call: with strides {strides} neither its "
                "rows nor its columns are adjacent elements that go forward."
            )


def _without_tma(call: DirectCall, plan: Plan, choice: ChosenKernel, gpu: Gpu) -> Iterator[str]:
    """Why TMA is not used where tensor cores could take its tiles (wgmma)."""
    schedule = choice.emitted.schedule
    types = dict(schedule.dtypes)
    product = types["A"], types["B"], types["acc"]
    could = any(product in ATOMS[atom].products for atom in VIA["wgmma"])
    if not gpu.arch.startswith("sm_90") or not could or "via=tma" in format_schedule(schedule):
        return
    for name in "AB":
        view, size = choice.views[name], BYTES[types[name]]
        for count, step in zip(view.shape[:-1], view.strides[:-1], strict=True):
            if count > 1 and step * size % ALIGNED:
                yield (
                    f"TMA is not used: rows of {call.shown(name)} begin {step * size} bytes apart, "
                    f"and TMA takes multiples of {ALIGNED}."
                )
                return
        if view.pointer % ALIGNED:
            yield (
                f"TMA is not used: {call.shown(name)} begins {view.pointer % ALIGNED} bytes past a "
                f"multiple of {ALIGNED}."
            )
            return


def _reasons(plan: Plan, choice: ChosenKernel, gpu: Gpu) -> Iterator[str]:
    """Why this schedule: the estimate's reasons, or why it is not the estimate's."""
    chosen = choice.emitted.schedule
    target = runnable(plan.problem.schedule.target, gpu.arch)
    problem = replace(chosen.problem_alone, target=target)
    found = suggestion(problem, plan.extents, choice.views, gpu, fast=plan.fast)
    if found is None:
        small = 0 not in plan.extents.values()
        yield (
            f"A plain schedule: of f32 and f64 fewer than {LEAST} multiply-adds are not worth "
            "another one, and other types have none here."
            if small
            else "A plain schedule: an extent is 0, so nothing is multiplied."
        )
        return
    if replace(found.schedule, assumes=()) != replace(chosen, assumes=()):
        yield (
            "The suggested kernel can't take these tensors as they are (alignment, strides): a "
            "schedule with narrower accesses runs in its place."
        )
    # The schedule is used at other extents, too, and has no ``assume`` lines.
    yield from (reason for reason in found.reasons if not reason.startswith("assume:"))

"""An explanation as plain values, for ``--json`` and for comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from gemmgen.analyze.explain import Explanation, Traffic
from gemmgen.base.units import duration
from gemmgen.ir.dtypes import BYTES
from gemmgen.summation import order_text

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]


def as_json(e: Explanation) -> dict[str, Json]:
    """The whole explanation; the units are bytes, elements and seconds."""
    m, n, k, *batches = e.shape
    shape: dict[str, Json] = {"rows": m, "columns": n, "contracted": k}
    letters = e.kernel.program.problem.batch
    shape |= {"batches": dict(zip(letters, batches, strict=True))} if batches else {}
    return {
        "schedule": e.kernel.emitted.name,
        "shape": shape,
        "gpu": e.gpu.name,
        "beta": e.beta,
        "flops": e.roofline.flops,
        "operations": {
            **_fields(e.operations, "product", "product_formula", "epilogue", "epilogue_formula"),
            **_fields(e.operations, "expression", "total", "formula"),
            "each": dict(e.operations.each),
        },
        "unfused": (
            {"kernels": list(e.unfused.names), **_fields(e.unfused, "elements", "bytes")}
            if e.unfused
            else None
        ),
        "multiply_adds": e.fmas,
        "summation_order": order_text.as_json(e.summation),
        "formulas": [
            {"name": f.name, "counted": f.counted, "formula": f.text, "value": f.value}
            for f in e.formulas
        ],
        "traffic": _traffic(e.traffic),
        "joined_reads": _traffic(e.joined),
        "sites": [
            {
                **_fields(s, "buffer", "space", "write", "width", "note"),
                "directives": list(s.origins),
                **asdict(counts),
            }
            for s, counts in e.launch.items()
        ],
        "pads": [
            {
                **_fields(p, "buffer", "width"),
                "now": asdict(p.now),
                "best": asdict(p.best),
                "swizzled": asdict(p.swizzled) if p.swizzled else None,
            }
            for p in e.pads
        ],
        **_bounds(e),
    }


def _traffic(traffic: tuple[Traffic, ...]) -> list[Json]:
    return [
        {"buffer": t.buffer, "write": t.write, "widths": list(t.widths), **asdict(t.counts)}
        for t in traffic
    ]


def _bounds(e: Explanation) -> dict[str, Json]:
    return {
        "resources": {
            **_fields(e.resources, "threads", "shared", "registers"),
            "registers_are_estimated": e.resources.estimated,
            **_fields(e.resources, "spills", "spill_stores", "spill_loads", "compiler", "unknown"),
            "instructions": dict(e.resources.instructions),
            "main_loop": asdict(e.resources.loop) if e.resources.loop else None,
            "main_loop_unavailable": e.resources.unread,
        },
        "occupancy": {
            **_fields(e.occupancy, "blocks", "warps", "share", "limiter"),
            "limits": dict(e.occupancy.limits),
        },
        "waves": {
            **_fields(e.waves, "blocks", "per_wave", "count", "last_fill", "efficiency"),
            "balance": e.balance,
        },
        "roofline": {
            **_fields(e.roofline, "intensity", "ridge"),
            "peak_flops": e.roofline.peak,
            "bounds": [asdict(bound) for bound in e.roofline.bounds],
            "binding": e.roofline.binding.name,
            "attainable_flops": e.roofline.attainable,
        },
    }


def _fields(value: object, *names: str) -> dict[str, Json]:
    return {name: getattr(value, name) for name in names}


def _accesses_of_c(e: Explanation) -> dict[str, str]:
    """Elements of C read and written: here, and if elementwise kernels did the epilogue."""
    c = e.kernel.program.problem.c
    size = BYTES[c.dtype]
    own = {t.write: t.counts.elements for t in e.traffic if t.buffer == c.name}
    reads, writes = own.get(False, 0), own.get(True, 0)
    name = f"accesses of {c.name}"
    found = {name: _reads_and_writes(reads, writes, size)}
    if e.unfused is not None:
        more = e.unfused.elements // 2
        what = f"{name}, by elementwise kernels ({', '.join(e.unfused.names)})"
        found[what] = _reads_and_writes(reads + more, writes + more, size)
    return found


def _reads_and_writes(reads: int, writes: int, size: int) -> str:
    return f"{reads:,} reads, {writes:,} writes ({(reads + writes) * size / 1e6:,.1f} MB)"


def as_figures(e: Explanation) -> dict[str, str]:
    """The figures in which two schedules are compared: names and readable values, in the report's
    order."""
    found = {"threads a block": f"{e.resources.threads:,}"}
    found["shared bytes a block"] = f"{e.resources.shared:,}"
    if e.resources.estimated:
        found["registers a thread (estimated)"] = f"{e.resources.registers}"
    else:
        found["registers a thread"] = f"{e.resources.registers}"
        found["bytes of spills"] = f"{e.resources.spills:,}"
    loop = e.resources.loop
    if loop is not None:
        found[f"main loop: {loop.arithmetic}"] = f"{loop.count:,}"
        found["main loop: other instructions"] = f"{loop.others:,} ({loop.overhead:.1%})"
        found["main loop: code"] = f"{loop.code / 1024:.0f} KiB"
        found["main loop: with .reuse"] = f"{loop.reuse:.0%}"
        found["main loop: register bank conflicts"] = f"{loop.conflicts:,}"
    found["blocks"] = f"{e.waves.launched:,}"
    found["blocks an SM"] = f"{e.occupancy.blocks} ({e.occupancy.limiter})"
    found["occupancy"] = f"{e.occupancy.share:.0%}"
    found["waves"] = f"{e.waves.count} (last {e.waves.last_fill:.0%} full)"
    for f in e.formulas:
        found[f.name] = f"{f.counted:,}"
    found |= _accesses_of_c(e)
    for t in e.hardware:
        c = t.counts
        if c.phases:
            found[f"{t.name}: wavefronts"] = f"{c.wavefronts:,}"
            found[f"{t.name}: conflicts"] = f"{c.ways}-way" if c.conflicts else "none"
        else:
            found[f"{t.name}: sectors"] = f"{c.sectors:,}"
            found[f"{t.name}: sectors/request"] = f"{c.sectors_per_request:.2f}"
    roofline = e.roofline
    for bound in roofline.bounds:
        found[f"least time for {bound.name}"] = duration(bound.seconds, 4)
    found["bound by"] = roofline.binding.name
    found["attainable"] = f"{roofline.attainable / 1e12:.1f} TFLOP/s"
    return found

"""The ladder and beyond: a schedule, its changes, its bounds, and its measurements."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from gemmgen.gpu.gpus import GPUS
from gemmgen.schedule.examples import PERCENTAGES
from gemmgen_docs import commands, compared, measured, schedules
from gemmgen_docs.compared import BEYOND, HOPPER, RUNGS, Compared
from gemmgen_docs.markdown import cell, difference, fence, folded
from gemmgen_docs.markdown import table as markdown_table
from gemmgen_docs.translation import ENGLISH, said, sentences

SIZE = 4096
WHOLE = 10_000
"""Lines of context: a program's difference shows all of it."""


def rung(name: str) -> str:
    """The generated part of an example's page."""
    return "\n".join(["## Schedule\n", schedules.schedule(name), step(name)])


def step(name: str, lang: str = ENGLISH) -> str:
    """The same below its schedule, between which and the rest there may be drawings."""
    parts = [changes(name, lang=lang), schedules.cuda(name, lang)]
    return "\n".join([*parts, limits(name, lang=lang), times(name, lang=lang)])


def changes(name: str, level: int = 2, lang: str = ENGLISH) -> str:
    """The changes of an example in the program and in the CUDA C; for the first, all of both."""
    mark, to = "#" * level, schedules.text(name)
    against = compared.of(name)
    before = against.text()
    if before is None:
        parts = [f"{mark} {said('Program', lang)}\n", fence(schedules.program(to))]
        return "\n".join([*parts, f"{mark} CUDA C\n", fence(schedules.kernel(to), "cuda")])
    return "\n".join(
        [
            f"{mark} {said(f'What changes in the program, from {against.called()}', lang)}\n",
            difference(schedules.program(before), schedules.program(to), WHOLE),
            f"{mark} {said(f'What changes in the CUDA C, from {against.called()}', lang)}\n",
            difference(schedules.kernel(before), schedules.kernel(to), 2),
        ]
    )


@functools.cache
def explained(name: str) -> Mapping[str, Any]:
    """The figures of ``gemmgen explain`` for an example."""
    ran = commands.run(f"{_explain(name)} --json --no-next")
    assert ran.exit_code == 0, ran.err
    return json.loads(ran.out)


def _explain(name: str) -> str:
    return f"gemmgen explain examples/{name}.sched --shape {compared.of(name).shape}"


def limits(name: str, level: int = 2, lang: str = ENGLISH) -> str:
    """The bounds of an example, the tightest first, and all counts."""
    roofline = explained(name)["roofline"]
    bounds = sorted(roofline["bounds"], key=lambda bound: -bound["seconds"])
    rows = [
        (
            ("**{}**" if bound["name"] == roofline["binding"] else "{}").format(
                said(bound["name"], lang)
            ),
            f"{bound['seconds'] * 1e3:,.3f}",
            f"{explained(name)['flops'] / bound['seconds'] / 1e12:,.1f}",
            cell(said(bound["how"], lang)),
        )
        for bound in bounds
    ]
    header = [said(column, lang) for column in ("", "at least, ms", "at most, TFLOP/s", "how")]
    return "\n".join(
        [
            f"{'#' * level} {said('What limits it', lang)}\n",
            f"{said(_binding(name), lang)}\n",
            markdown_table(header, rows, right=(1, 2)),
            folded(said("All figures, counted", lang), commands.output(_explain(name))),
        ]
    )


def _binding(name: str) -> str:
    found = explained(name)
    roofline, shape = found["roofline"], found["shape"]
    attainable, peak = roofline["attainable_flops"] / 1e12, roofline["peak_flops"] / 1e12
    at = " x ".join(str(shape[part]) for part in ("rows", "columns", "contracted"))
    return (
        f"At {at} on an NVIDIA {found['gpu']} the tightest bound is that of "
        f"**{roofline['binding']}**: at most {attainable:.1f} of {peak:,.1f} TFLOP/s. The "
        "counts are exact; the bounds do not include latency."
    )


def naive_rates(lang: str = ENGLISH) -> str:
    """What the naive kernel asks of each level of memory a second, by its counts and its time."""
    row = measured.cubes("naive").get(SIZE)
    assert row is not None, "the naive kernel was not measured"
    found = explained("naive")
    seconds, bounds = row["ms"] / 1e3, {x["name"]: x for x in found["roofline"]["bounds"]}
    gpu = GPUS[found["gpu"]]
    memory = bounds["device memory"]["seconds"] * gpu.memory / seconds
    requests = sum(x["requests"] for x in found["traffic"] if not x["write"])
    lines = requests / seconds / gpu.sms
    return sentences(
        f"Measured at {SIZE}: {row['ms']:.1f} ms. In that time each matrix comes from device "
        f"memory once, {memory / 1e9:.1f} GB/s, {memory / gpu.memory:.1%} of its bandwidth. "
        f"The {requests / 1e9:.1f} G requests of warps are served by the L1 caches: "
        f"{lines / 1e9:.2f} lines of L1 a nanosecond and multiprocessor, of at most "
        f"{gpu.clock / 1e9:.2f}, one for each clock.",
        lang,
    )


def times(name: str, level: int = 2, lang: str = ENGLISH) -> str:
    """The measurements of an example, if there are any."""
    found = measured.of(name)
    if not found:
        return ""
    rows = [
        (
            " x ".join(str(size) for size in row["shape"].values()),
            f"{row['ms']:.3f}",
            f"{row['tflops']:.2f}",
            measured.share(row),
            said("yes" if row["checked"] else "**no**", lang),
        )
        for row in found
    ]
    columns = ("shape", "ms", "TFLOP/s", "of cuBLAS", "result right")
    note = f"On an {measured.on(found)}, interleaved with cuBLAS, medians; {_documents(name)}"
    shown = markdown_table([said(x, lang) for x in columns], rows, right=(1, 2, 3))
    return f"{'#' * level} {said('Measured', lang)}\n\n{said(note, lang)}\n\n{shown}"


def _documents(name: str) -> str:
    share = PERCENTAGES.get(name)
    if share is None:
        return "the documents give no figure for this kernel."
    return f"the documents say {share}% of cuBLAS (1024, RTX 3080)."


def table(lang: str = ENGLISH) -> str:
    """A table of all rungs of the ladder."""
    note = ""
    if found := measured.of("naive"):
        note = f"Measured on an {measured.on(found)}, f32, by `gemmgen ladder`."
        note = f"\n{said(note, lang)}\n"
    return _table("rung", RUNGS, lang) + note


def beyond_table() -> str:
    """A table of the examples beyond the ladder."""
    return _table("schedule", BEYOND)


def hopper_table() -> str:
    """A table of the rungs of the second ladder."""
    found = [row for name in HOPPER for row in measured.of(name)]
    note = (
        f"Measured on an {measured.on(found)}, f32, by `gemmgen ladder`."
        if found
        else ("Their times are not measured yet: all else is counted, and proved on the CPU.")
    )
    return f"{_table('schedule', HOPPER)}\n{note}\n"


def _table(first: str, examples: Mapping[str, Compared], lang: str = ENGLISH) -> str:
    documented = bool(PERCENTAGES.keys() & examples.keys())
    header = [first, "what is new"]
    header += ["the documents' share of cuBLAS"] if documented else ["compared with"]
    header += ["global reads", "bound by", "at most, TFLOP/s"]
    sizes = sorted({size for name in examples for size in measured.cubes(name)})
    right = [2, 5] if documented else [5]
    right += range(len(header), len(header) + len(sizes))
    header += [f"of cuBLAS, {size}" for size in sizes]
    rows = [_line(name, sizes, documented, lang) for name in examples]
    return markdown_table([said(column, lang) for column in header], rows, right)


def _line(name: str, sizes: Sequence[int], documented: bool, lang: str) -> list[str]:
    against, figures = compared.of(name), explained(name)
    share = PERCENTAGES.get(name)
    line = [f"[{name}]({compared.page_of(name)})", _new(name)]
    if documented:
        line.append(f"{share}%" if share else "")
    else:
        line.append(against.called())
    named = [f for f in figures["formulas"] if f["name"].startswith("global reads of ")]
    reads = [f for f in named if not f["name"].endswith(", a block")][-1]  # `of A and x`, too
    bound = said(figures["roofline"]["binding"], lang)
    line += [f"`{reads['formula']}`", bound.replace(" ", "&nbsp;")]
    line.append(f"{figures['roofline']['attainable_flops'] / 1e12:,.1f}")
    at = {size: measured.share(row) for size, row in measured.cubes(name).items()}
    return line + [at.get(size, "") for size in sizes]


def _new(name: str) -> str:
    """The statements with facts that the compared schedule does not have, as code."""
    known = {x for line in _statements(compared.of(name).text() or "") for x in _facts(line)}
    lines = _statements(schedules.text(name))
    return ", ".join(f"`{line}`" for line in lines if not _facts(line) <= known)


def _statements(text: str) -> list[str]:
    return [" ".join(line.split()) for line in schedules.statements(text)]


def _facts(statement: str) -> set[str]:
    """A statement of several operands as one of each: ``pad A B by=8`` is two."""
    found = re.fullmatch(
        r"(\w+) ((?:[A-Za-z]\w*(?:\.\w+|\[[^]]*\])? ?)+)((?:\w+=\S+ ?)*)", statement
    )
    if found is None or found[1] in ("gemm", "kernel", "fuse_epilogue"):
        return {statement}
    word, operands, arguments = found.groups()
    each = re.findall(r"\w+(?:\.\w+|\[[^]]*\])?", operands)
    return {f"{word} {operand} {arguments}" for operand in each}

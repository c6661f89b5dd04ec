"""Schedules for tensor cores against cuBLAS and cublasLt, each case and shape in one run.

    python benchmarks/tensor_cores.py                           # a table at the end
    python benchmarks/tensor_cores.py --only fp8 --seconds 300  # cases of that name, five minutes
    python benchmarks/tensor_cores.py --suggest                 # and what suggest writes
    python benchmarks/tensor_cores.py --json FILE               # and its rows as JSON
    python benchmarks/tensor_cores.py --page                    # docs/performance.md from that data

The cases are those of ``tensor_cores.toml``.  All but the last need a GPU of sm_90a, CuPy and
cuBLAS.  Random normal numbers, a warm L2 cache, medians of interleaved launches
(``gemmgen.gpu.timing``).  Rows of each result are compared with float64 by the bound of its types,
and infinities and NaNs are looked for in the others.  Exit code 1 if a result was wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, astuple
from datetime import date
from pathlib import Path

import tensor_cases
import tensor_shares
from shares import ROOT, replaced
from tensor_cases import Group
from tensor_shares import SUGGEST, Line

from gemmgen.base.errors import CannotCheck, ScheduleError
from gemmgen.base.source import Source
from gemmgen.gpu import device, store
from gemmgen.gpu.bench import Entry, bench
from gemmgen.gpu.bench_row import BenchRow
from gemmgen.gpu.rivals import is_rival
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof.gpu import reference_of

ROUNDS, WARMUP, THREADS, CHECKED_ROWS = 9, 0.5, 8, 96


def main() -> int:
    arguments = _arguments()
    if arguments.page:
        target = ROOT / "docs/performance.md"
        block = tensor_shares.page_block(tensor_shares.measured())
        text = replaced(target.read_text(encoding="utf-8"), block, tensor_shares.MARKS)
        target.write_text(text, encoding="utf-8")
        return 0
    begin = time.monotonic()
    groups = [group for group in tensor_cases.read() if arguments.only in group.what]
    chosen = suggested(groups) if arguments.suggest else {}
    kernels = compiled(groups, chosen, arguments.threads)
    print(f"{len(kernels)} kernels compiled in {time.monotonic() - begin:.0f} s", flush=True)
    lines: list[Line] = []
    for found in measured(groups, chosen, kernels, arguments.rounds, begin + arguments.seconds):
        lines += found
        print(text_of(found), flush=True)
        if arguments.json:  # after each shape: a kernel that fails leaves what came before it
            rows = json.dumps([asdict(line) for line in lines], indent=1)
            Path(arguments.json).write_text(rows + "\n", encoding="utf-8")
    if lines:
        print(f"\n{tensor_shares.table(lines)}\n{tensor_shares.note(lines)}")
    return 0 if all(line.checked for line in lines) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", metavar="FILE", help="write the rows there, after each shape")
    parser.add_argument("--only", metavar="WORD", default="", help="cases whose name has it")
    parser.add_argument("--suggest", action="store_true", help="time what suggest writes, too")
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="begin no shape after that time"
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="samples of each kernel")
    parser.add_argument("--threads", type=int, default=THREADS, help="compile this many at a time")
    parser.add_argument(
        "--page",
        action="store_true",
        help=f"measure nothing: the table of docs/performance.md, from {tensor_shares.DATA.name}",
    )
    return parser.parse_args()


Chosen = dict[tuple[Group, tuple[int, int, int]], str]
"""The texts that ``suggest`` writes for a group's shapes."""


def suggested(groups: Sequence[Group]) -> Chosen:
    """A text for each group and shape, by this GPU's measured results and the cost model."""
    return {
        (group, shape): group.suggested(shape)
        for group in groups
        if group.comparable
        for shape in group.shapes
    }


def compiled(groups: Sequence[Group], chosen: Chosen, threads: int) -> dict[str, Emitted]:
    """The kernels of all groups by their schedules, in the cache for this GPU; those that do not
    compile are printed and left out."""
    capability = device.capability(device.cupy().cuda.runtime.getDevice())
    names = {text: SUGGEST for text in chosen.values()}
    names |= {text: name for group in groups for name, text in group.texts}

    def one(text: str) -> Emitted | str:
        try:
            emitted = compile_source(Source(text, names[text]))
            store.stored(emitted.text, device.arch_for(emitted.target, *capability))
        except (ScheduleError, CannotCheck, RuntimeError) as failure:
            return f"{names[text]}: {failure}"
        return emitted

    with ThreadPoolExecutor(threads) as pool:
        found = dict(zip(names, pool.map(one, names), strict=True))
    for failure in found.values():
        if isinstance(failure, str):
            print(f"not compiled: {failure}", flush=True)
    return {text: each for text, each in found.items() if isinstance(each, Emitted)}


def measured(
    groups: Sequence[Group],
    chosen: Chosen,
    kernels: dict[str, Emitted],
    rounds: int,
    until: float,
) -> Iterator[list[Line]]:
    """The lines of each shape, rivals first; what there is no time for is counted."""
    left = sum(len(group.shapes) for group in groups)
    for group in groups:
        entries = [_entry(name, kernels[text]) for name, text in group.texts if text in kernels]
        for shape in group.shapes:
            if time.monotonic() >= until:
                print(f"out of time: {left} shapes are left out", flush=True)
                return
            left -= 1
            own = chosen.get((group, shape))
            added = [_entry(SUGGEST, kernels[own])] if own in kernels else []
            rows = _timed(group, [*entries, *added], shape, rounds)
            if rows:
                texts = dict(group.texts) | ({SUGGEST: own} if own else {})
                yield [line_of(group, row, rows, texts) for row in rows]


def _entry(name: str, emitted: Emitted) -> Entry:
    return Entry.of(name, emitted, reference_of(emitted))


def _timed(
    group: Group, entries: Sequence[Entry], shape: tuple[int, int, int], rounds: int
) -> list[BenchRow]:
    """The rows of a shape that were timed; why others were not is printed."""
    extents = dict(zip("MNK", shape, strict=True))
    said = f"{group.what}, {'x'.join(map(str, shape))}"
    try:
        rows = bench(entries, [extents], warmup=WARMUP, rounds=rounds, checked_rows=CHECKED_ROWS)
    except (CannotCheck, MemoryError, RuntimeError) as failure:
        print(f"not timed: {said}: {type(failure).__name__}: {failure}", flush=True)
        return []
    finally:
        device.cupy().get_default_memory_pool().free_all_blocks()
    for row in rows:
        if row.ms is None:
            print(f"refused: {said}, {row.name}: {row.note}", flush=True)
    return [row for row in rows if row.ms is not None]


def line_of(
    group: Group, row: BenchRow, rows: Sequence[BenchRow], texts: Mapping[str, str]
) -> Line:
    """A row that was timed, as a line; ``texts`` are the schedules by name."""
    library = row.name.split()[0]
    rivals = [other.name.split()[0] for other in rows if is_rival(other.name)]
    sizes = dict(row.shape)
    return Line(
        what=group.what,
        schedule=library if is_rival(row.name) else row.name,
        types=group.types,
        product=group.product,
        shape=(sizes["M"], sizes["N"], sizes["K"]),
        ms=row.ms or 0.0,
        tflops=row.tflops or 0.0,
        rival=rivals[0] if rivals else "",
        share=row.share,
        of_best=row.of_best,
        power=row.power,
        sm_clock=row.sm_clock,
        checked=row.checked,
        note=row.note,
        gpu=row.gpu,
        date=date.today().isoformat(),
        text=texts.get(row.name, ""),
        **dict(zip(("clock", "driver", "cuda", "cublas"), astuple(row.setup), strict=True)),
    )


def text_of(lines: Sequence[Line]) -> str:
    """Lines of one shape for a terminal, the fastest first."""
    head = f"{lines[0].inputs()}, {lines[0].spelled()}" if lines else ""
    shown = [head]
    for line in sorted(lines, key=lambda line: line.ms):
        _, _, name, *cells = line.cells()
        clock = "" if line.sm_clock is None else f"{line.sm_clock} MHz"
        wrong = "" if line.checked else f"  WRONG: {line.note}"
        spelled = "".join(f"{cell:>11}" for cell in cells)
        shown.append(f"  {name:26s}{line.ms * 1000:11.1f} us{spelled} {clock}{wrong}")
    return "\n".join(shown)


if __name__ == "__main__":
    sys.exit(main())

"""``python -m tests.register_table --update``: compile kernels of every atom, tile and role, and
keep what ptxas says of their registers in ``tests/nvrtc/registers.csv``.  The tests compare it with
gemmgen's arithmetic."""

from __future__ import annotations

import argparse
import csv
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path

from gemmgen.base.errors import CannotCheck, Mistake, Refusal, ScheduleError
from gemmgen.base.source import Source
from gemmgen.emit import emit
from gemmgen.emit.formula import formula_comment
from gemmgen.gpu import compiler
from gemmgen.ir.nodes import Program
from gemmgen.ir.occupancy import (
    blocks_per_multiprocessor,
    registers_at_launch,
    registers_of_instruction,
)
from gemmgen.ir.target import TARGETS, WARPGROUP
from gemmgen.language import parse_schedule
from gemmgen.pipeline import compile_schedule, make_concrete, rewrite

TABLE = Path(__file__).parent / "nvrtc" / "registers.csv"
OPTIONS = compiler.OPTIONS
_NEEDS = re.compile(r"Insufficient registers \((\d+)\).*register target of (\d+)")


@dataclass(frozen=True)
class Row:
    """A kernel, and ptxas's verdict: registers and bytes of spills, or what it ``needs`` more than
    it ``had``; ``other`` is an error of another kind."""

    atom: str
    tile: str
    share: str
    extra: str
    had: int
    needs: int
    registers: int
    spills: int
    other: str = ""

    @property
    def compiles(self) -> bool:
        return not self.needs and not self.other

    @property
    def key(self) -> Key:
        return self.atom, self.tile, self.share, self.extra


STEPS = {"bf16": 64, "f16": 64, "tf32": 32, "e4m3": 128, "i8": 128, "f64": 16, "f32": 16}
ROLES = ("", "warp_specialize producers=1", "warp_specialize producers=1 order=pingpong;persistent")


Key = tuple[str, str, str, str]


def keys() -> Iterator[Key]:
    """Atom, tile, a warp's or a thread's share, and further lines, of every kernel in the table."""
    for n, roles in product(range(8, 257, 8), ROLES):
        yield _wgmma("bf16", n, 1, 1, roles)
    for n, groups, roles in product(range(16, 257, 16), (2, 3, 4), ROLES[:2]):
        yield _wgmma("bf16", n, groups, 1, roles)
    wide = (64, 104, 128, 160, 192, 208, 224, 256)
    for n, groups, roles in product(wide, (1, 2, 3, 4), ROLES[:2]):
        yield _wgmma("bf16", n, groups, 2, roles)
    for dtype in ("f16", "tf32", "e4m3", "i8"):
        for n, groups, roles in product(
            (8, 24, 48, 96, 112, 144, 192, 208, 256), (1, 2, 3, 4), ROLES[:2]
        ):
            if dtype == "i8" or groups < 3:
                yield _wgmma(dtype, n, groups, 1, roles)
    for n, blocks, groups, roles in product((64, 128, 160, 224), range(2, 7), (1, 2), ROLES[:2]):
        extra = f"{roles};launch_bounds blocks={blocks}".lstrip(";")
        if blocks * WARPGROUP * (groups + bool(roles)) <= TARGETS["sm_90a"].threads:
            yield _wgmma("bf16", n, groups, 1, extra)
    for n, groups, roles in product(range(16, 193, 16), (1, 2), ROLES[:2]):
        yield "wgmma split", f"m={64 * groups} n={n} k=32", f"m=64 n={n}", roles
        yield "wgmma promoted", f"m={64 * groups} n={n} k=64", f"m=64 n={n}", roles
    for dtype, m, n, warps in product(
        ("bf16", "tf32", "e4m3", "i8", "f64"), (16, 64, 128), (8, 32, 64, 128), (1, 8, 16)
    ):
        yield f"mma {dtype}", f"m={m * warps} n={n} k={STEPS[dtype]}", f"m={m} n={n}", ""
    for m, n, warps in product((16, 64, 128), (16, 64, 128), (1, 8, 16)):
        yield "wmma f16", f"m={m * warps} n={n} k=32", f"m={m} n={n}", ""
    for dtype, m, n, rows in product(("f32", "f64"), (1, 4, 8, 16), (1, 4, 8, 16), (8, 32)):
        yield f"fma {dtype}", f"m={m * rows} n={n * 16} k=16", f"m={m} n={n}", ""


def _wgmma(dtype: str, n: int, groups: int, rows: int, extra: str) -> Key:
    """A tile of ``groups`` warpgroups, each with ``rows`` instructions of 64 x ``n``."""
    tile = f"m={64 * groups * rows} n={n} k={STEPS[dtype]}"
    return f"wgmma {dtype}", tile, f"m={64 * rows} n={n}", extra


def text_of(key: Key) -> str:
    """The schedule of a row."""
    atom, tile, share, extra = key
    via, kind = atom.split()
    dtype = {"split": "f32", "promoted": "bf16"}.get(kind, kind)
    lines = ["gemm C[m, n] = A[m, k] * B[n, k]", "target sm_90a", f"tile {tile}"]
    output = {"i8": "f32", "e4m3": "bf16", "tf32": "f32"}.get(dtype, dtype)
    if dtype not in ("f32", "f64"):
        lines += [f"dtype A={dtype} B={dtype} C={output}", "fuse_epilogue acc"]
    lines += ["dtype A=f64 B=f64 C=f64 acc=f64"] if dtype == "f64" else []
    lines += ["cache_shared A B", f"{'register_block' if via == 'fma' else 'warp_tile'} {share}"]
    promote = " promote=64" if kind in ("promoted", "split") else ""
    lines += [f"tensor_core via={via}{promote}"] if via != "fma" else []
    lines += ["decompose into=bf16 parts=3 products=6"] if kind == "split" else []
    if via == "wgmma":
        lines += ["swizzle A B", "double_buffer A B", "async_copy A B via=tma"]
    return "\n".join((*lines, *filter(None, extra.split(";")))) + "\n"


def mistakes_of(key: Key) -> tuple[Mistake, ...]:
    """Why gemmgen refuses the schedule of a row; nothing if it does not."""
    try:
        compile_schedule(parse_schedule(Source(text_of(key))))
    except ScheduleError as refused:
        return refused.mistakes
    return ()


def unchecked(key: Key) -> tuple[Program, str] | None:
    """The program and the text of a row, whatever its registers; None if a pass refuses it."""
    try:
        schedule = parse_schedule(Source(text_of(key)))
        program = rewrite(schedule)[-1].program
        (kernel,) = make_concrete(program).kernels
        if kernel.interface.shared > 227 * 1024 or kernel.threads > 1024:
            return None
        return program, emit(kernel, formula_comment(program), "")
    except (ScheduleError, Refusal):
        return None


def arithmetic(program: Program) -> tuple[int, int]:
    """Registers of a thread at the launch, and those that its instructions need there."""
    had = registers_at_launch(program.main.threads, blocks_per_multiprocessor(program.main))
    return had, registers_of_instruction(program.main)


def row_of(key: Key) -> Row | None:
    """The row of the table, compiled; None of a schedule that is refused for something else."""
    found = unchecked(key)
    if found is None:
        return None
    program, text = found
    had, _ = arithmetic(program)
    try:
        log = compiler.compiler().compile(text, "", "sm_90a", OPTIONS).log
    except compiler.CompileError as refused:
        needs = _NEEDS.search(refused.log)
        other = "" if needs else refused.log.strip().split("\n")[0]
        return Row(
            *key, int(needs[1]) if needs else had, int(needs[2]) if needs else 0, 0, 0, other
        )
    warning = re.search(r"C75\d\d", log)
    used = max(map(int, re.findall(r"Used (\d+) registers", log)))
    spills = sum(map(int, re.findall(r"(\d+) bytes spill", log)))
    return Row(*key, had, 0, used, spills, warning[0] if warning else "")


def read_table() -> tuple[Row, ...]:
    """The rows that are kept."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return tuple(
            Row(**{f.name: int(r[f.name]) if f.type == "int" else r[f.name] for f in fields(Row)})
            for r in csv.DictReader(file)
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if the rows are those of the table or are written to it, 1 if one differs, 3 without a
    compiler."""
    parser = argparse.ArgumentParser(prog="python -m tests.register_table", description=__doc__)
    parser.add_argument("--update", action="store_true", help="write the table again")
    asked = parser.parse_args(arguments)
    begin, found = time.monotonic(), list[Row]()
    try:
        for key in keys():
            row = row_of(key)
            found += [row] if row else []
    except CannotCheck as missing:
        print(missing, file=sys.stderr)
        return 3
    kinds = Counter(
        (row.atom, "compiles" if row.compiles else "needs registers" if row.needs else row.other)
        for row in found
    )
    for (atom, what), count in sorted(kinds.items()):
        print(f"{count:6} {atom}: {what}")
    print(f"{len(found)} kernels, {time.monotonic() - begin:.0f} s")
    if asked.update:
        with TABLE.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(f.name for f in fields(Row))
            writer.writerows([getattr(row, f.name) for f in fields(Row)] for row in found)
        return 0
    known = {row.key: row for row in read_table()}
    wrong = [row for row in found if known.get(row.key) != row]
    for row in wrong:
        print(f"{row} and not {known.get(row.key)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

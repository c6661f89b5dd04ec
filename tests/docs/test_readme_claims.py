"""README's first sentences say what the tables below them were made from."""

import json
import re
from pathlib import Path

from gemmgen.base.source import Source
from gemmgen.pipeline import compile_source

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FIRST = README.split("\n\n")[1]


def test_the_share_of_the_schedule_that_is_shown() -> None:
    rows = json.loads((ROOT / "docs/data/tensor_cores.json").read_text(encoding="utf-8"))
    (share,) = (
        row["share"]
        for row in rows
        if (row["what"], row["schedule"]) == ("bf16", "best/bf16_8192")
        if row["shape"] == [8192] * 3 and row["product"] == "A[m, k] * B[n, k]" and row["checked"]
    )
    said = re.search(r"reaches (\d+)% of cuBLAS at 8192", FIRST)
    assert said is not None and int(said[1]) == int(100 * share)


def test_what_is_shown_is_the_schedule_and_its_text() -> None:
    schedule = (ROOT / "examples/best/bf16_8192.sched").read_text(encoding="utf-8")
    text = compile_source(Source(schedule)).text
    shown = README.split("```")[1]
    statements = [line[4:].partition("#")[0].rstrip() for line in README.splitlines()]
    first = statements.index("tile            m=128 n=192 k=64")
    assert "\n".join(statements[first : first + 12]) in schedule
    at = text.index("// main loop over tiles along K")
    for line in shown.removeprefix("cuda\n").splitlines():
        code = line.partition("//")[0].strip()
        if code != "...":
            at = text.index(code, at) + len(code)


def test_shares_of_the_last_rung() -> None:
    rows = json.loads((ROOT / "docs/data/ladder.json").read_text(encoding="utf-8"))
    shares = {r["shape"]["M"]: r["share"] for r in rows if r["name"] == "warp_tiled"}
    said = re.search(r"reaches (\d+)% of cuBLAS at 4096 and (\d+)% at 1024", FIRST)
    assert said is not None
    assert [int(x) for x in said.groups()] == [int(100 * shares[size]) for size in (4096, 1024)]


def test_shares_of_the_schedules_by_size() -> None:
    rows = json.loads((ROOT / "docs/data/cublas.json").read_text(encoding="utf-8"))
    sizes = ("large", "about 512", "about 1024", "odd extents")
    shares = [row["share"] for row in rows if row["what"] in sizes]
    said = re.search(r"\[(\d+)% to (\d+)%\]", FIRST)
    assert said is not None
    assert [int(x) for x in said.groups()] == [int(100 * min(shares)), int(100 * max(shares))]

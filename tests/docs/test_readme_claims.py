"""README's first sentences say what the tables below them were made from."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FIRST = (ROOT / "README.md").read_text(encoding="utf-8").split("\n\n")[1]


def test_shares_of_the_schedule_that_is_shown() -> None:
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

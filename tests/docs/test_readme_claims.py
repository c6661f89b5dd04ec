"""README's first sentences say what the tables below them were made from."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from cli.running import gemmgen

from gemmgen.base.installing import install
from gemmgen.base.source import Source
from gemmgen.ir.dtypes import DTYPES
from gemmgen.ir.target import nvcc_flag
from gemmgen.language import VOCABULARY
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


def first_block() -> str:
    """The first indented block, as a reader copies it to a file."""
    lines = README.splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith("    "))
    last = next(at for at in range(first, len(lines)) if not lines[at].startswith("    "))
    return "".join(f"{line[4:]}\n" for line in lines[first:last])


def test_the_first_schedule_compiles_and_is_the_example(tmp_path: Path) -> None:
    copied = tmp_path / "first.sched"
    copied.write_text(first_block(), encoding="utf-8")
    found = gemmgen("emit", copied)
    assert found.exit_code == 0, found.output
    assert found.stdout == gemmgen("emit", ROOT / "examples/best/bf16_8192.sched").stdout


def texts() -> dict[str, str]:
    """The texts that a user reads, by name: pages, programs and messages."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("this is no clone")
    kinds = (".md", ".py", ".ipynb", ".toml", ".sched")
    names = [n for n in listed.stdout.split() if n.endswith(kinds) and (ROOT / n).exists()]
    return {name: (ROOT / name).read_text(encoding="utf-8") for name in names}


def test_nothing_is_installed_by_a_name_that_is_not_published() -> None:
    advice = re.compile(r"pip install[^\n`]*gemmgen(\[|')")
    assert [name for name, text in texts().items() if advice.search(text)] == []
    assert install("cuda13") == "pip install '.[cuda13]' in a clone of gemmgen"


def test_pages_that_build_by_nvcc_say_what_sm_90a_needs() -> None:
    pages = {n: t for n, t in texts().items() if n.endswith(".md") and not n.startswith("docs/adr")}
    native = [name for name, text in pages.items() if "nvcc" in text and "-arch=native" in text]
    assert native and all(nvcc_flag("sm_90a") in pages[name] for name in native)


def test_limits_name_every_type_and_instruction() -> None:
    limits = README.partition("## Limits of this version")[2]
    assert all(re.search(rf"\b{name}\b", limits) for name in (*DTYPES, "wgmma", "mma", "WMMA"))


def test_ladder_order_is_that_of_directives_alone() -> None:
    """`help` and `fmt` have it; examples have an order of their own."""
    named = gemmgen("help").stdout.partition("ladder order:\n")[2].partition("\n\n")[0]
    assert tuple(line.split()[0] for line in named.splitlines()) == VOCABULARY.directives
    assert "ladder order" not in gemmgen("example", "--help").output


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

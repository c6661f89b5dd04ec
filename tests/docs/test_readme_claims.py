"""What README shows and says is so: its table, pictures, schedule, excerpt, commands, limits."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from cli.running import gemmgen
from gemmgen_docs import summary

from gemmgen.base.installing import install
from gemmgen.base.source import Source
from gemmgen.ir.dtypes import DTYPES
from gemmgen.ir.target import nvcc_flag
from gemmgen.language import VOCABULARY
from gemmgen.pipeline import compile_source

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


MOST_WORDS = 900
"""Outside tables."""


def test_the_table_and_the_pictures_are_made_from_the_data() -> None:
    assert summary.block() in README, "run: PYTHONPATH=docs python -m gemmgen_docs.summary"
    for dark in (False, True):
        drawn = summary.path(dark=dark).read_text(encoding="utf-8")
        for name, share in summary.rungs():
            assert f">{name}</text>" in drawn and f">{share:.1%}</text>" in drawn, name
        assert f"docs/pictures/{summary.path(dark=dark).name}" in README


def test_it_is_short() -> None:
    words = [line.split() for line in README.splitlines() if not line.startswith("|")]
    assert sum(map(len, words)) <= MOST_WORDS


def first_block() -> str:
    """The first indented block, as a reader copies it to a file."""
    lines = README.splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith("    "))
    last = next(at for at in range(first, len(lines)) if not lines[at].startswith("    "))
    return "".join(f"{line[4:]}\n" for line in lines[first:last])


def test_the_first_schedule_compiles_and_is_the_example(tmp_path: Path) -> None:
    copied = tmp_path / "vectorized.sched"
    copied.write_text(first_block(), encoding="utf-8")
    found = gemmgen("emit", "--schedule", copied)
    assert found.exit_code == 0, found.output
    assert found.stdout == gemmgen("emit", ROOT / "examples/vectorized.sched").stdout


def test_the_excerpt_is_of_its_kernel() -> None:
    text = compile_source(Source(first_block())).text
    at = text.index("// main loop over tiles along K")
    for line in README.split("```")[1].removeprefix("cuda\n").splitlines():
        code = line.strip()
        if code not in ("", "...", "}"):
            at = text.index(code, at) + len(code)


def test_its_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the block that asks for a kernel; `verify` of such a kernel is its own test."""
    monkeypatch.chdir(tmp_path)
    lines = [line.strip() for line in README.splitlines() if line.startswith("    gemmgen ")]
    commands = [shlex.split(line)[1:] for line in lines]
    assert [command[0] for command in commands] == ["suggest", "verify", "emit"]
    for command in commands:
        if command[0] != "verify":
            found = gemmgen(*command)
            assert found.exit_code == 0, found.output
    assert "via=wgmma" in (tmp_path / "my.sched").read_text(encoding="utf-8")
    assert (tmp_path / "my.cu").read_text(encoding="utf-8").startswith("// gemm: C[m, n] = ")


def texts() -> dict[str, str]:
    """The texts that a user reads, by name: pages, programs and messages."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("this is not a clone")
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
    """`help` and `fmt` have it; examples have their own order."""
    named = gemmgen("help").stdout.partition("order of the passes:\n")[2].partition("\n\n")[0]
    assert tuple(line.split()[0] for line in named.splitlines()) == VOCABULARY.directives
    assert "order of the passes" not in gemmgen("example", "--help").output

"""The schedules and Python lines that pages hold as text are right too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import gemmgen
from gemmgen.base.source import Source
from gemmgen.pipeline import compile_source

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md"))


def blocks(language: str) -> Iterator[tuple[str, str]]:
    """Each block of a language, with its page."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for found in re.finditer(rf"^```{language}\n(.*?)^```", text, re.M | re.S):
            yield page.relative_to(DOCS).as_posix(), found.group(1)


def emitted(text: str) -> str:
    return compile_source(Source(text)).text


def alternatives(text: str) -> list[str]:
    """A block of epilogues alone is as many schedules."""
    lines = text.splitlines()
    alone = all(line.startswith("fuse_epilogue") for line in lines)
    return lines if alone else [text]


SCHEDULES = [(page, one) for page, text in blocks("sched") for one in alternatives(text)]


@pytest.mark.parametrize(("page", "text"), SCHEDULES)
def test_a_schedule_on_a_page_compiles(page: str, text: str) -> None:
    assert "__global__" in emitted(text)


def test_schedules_named_and_written_in_python_compile() -> None:
    code = "\n".join(text for _, text in blocks("python"))
    written = re.findall(r'gemmgen\.compile\("(.*?)"(?:, device="cpu")?\)', code)
    assert len(written) == 4
    for schedule in written:
        text = schedule.encode().decode("unicode_escape")
        if text.endswith(".sched"):
            text = (DOCS.parent / text).read_text(encoding="utf-8")
        assert "__global__" in emitted(text)


def test_the_builder_on_a_page_gives_a_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = (text for _, text in blocks("python") if "Schedule(" in text)
    exec(block, {"gemmgen": gemmgen})
    assert "__global__" in capsys.readouterr().out


ON_CPU = [(page, x) for page, x in blocks("python") if page == "matmul.md" and "torch" not in x]


@pytest.mark.parametrize(("page", "block"), ON_CPU)
def test_products_on_a_page_run(page: str, block: str) -> None:
    exec(block, {})


def test_the_launcher_on_a_page_is_the_emitted_one() -> None:
    (block,) = (text for _, text in blocks("cpp") if "launch_gemm" in text)
    (declared,) = re.findall(r"^(cudaError_t launch_gemm\([^;]*\));$", block, re.MULTILINE)
    assert declared in emitted("tile m=16 n=16")

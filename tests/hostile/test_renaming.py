"""A name that a text uses is refused to a schedule, with a hint that works, or does no harm.

``python -m tests.hostile.names`` tries thousands.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from gemmgen.base.errors import ScheduleError
from gemmgen.base.source import Source
from gemmgen.emit import names_of
from gemmgen.ir.identifiers import language_word
from gemmgen.pipeline import compile_source
from gemmgen.schedule import reserved

from .hints import followed
from .renaming import ROOT, Base, base, outcome, trials
from .words import TEMPLATES, schedule_text

SAMPLE = (
    "examples/hopper/split_f32.sched",
    "examples/fused.sched",
    "examples/best/batched.sched",
    "examples/torch/gpt2_down.sched",
    "examples/mma/ahead.sched",
    "tests/golden/residual.sched",
)
GOLDENS = sorted((ROOT / "tests/golden").rglob("*.cu"))


def read(name: str) -> Base:
    (found,) = base(name, (ROOT / name).read_text(encoding="utf-8"))
    return found


def tried(names: tuple[str, ...], count: int) -> list[str]:
    found = trials([read(name) for name in names], 0)
    return [outcome(each, old, word)[0] for each, _, old, word in islice(found, count)]


@pytest.mark.proof
def test_a_sample_of_names() -> None:
    found = tried(SAMPLE[:4], 40)
    assert min(found.count("taken"), found.count("refused")) > 8


@pytest.mark.exhaustive
def test_more_names() -> None:
    assert len(tried(SAMPLE, 400)) == 400


SPLIT = (ROOT / SAMPLE[0]).read_text(encoding="utf-8")
OF_PLANES = ("A_parts", "A_parts_map", "B_parts_BLOCKS", "B_parts_n", "A_plane", "B_pitch")


@pytest.mark.by_default("*_parts", "*_pitch", "plane")
@pytest.mark.parametrize("name", (*OF_PLANES, "gemm_split", "plane", "SPLIT"))
def test_names_of_operand_planes_are_refused(name: str) -> None:
    other = "B" if name[0] == "A" else "A"
    for text in (SPLIT + f"fuse_epilogue acc * {name}\n", SPLIT.replace(other, name)):
        with pytest.raises(ScheduleError) as refused:
            compile_source(Source(text))
        (mistake,) = refused.value.mistakes
        assert mistake.span is not None and name in text[mistake.span.start : mistake.span.end]
        changed = followed(text, mistake)
        assert changed and compile_source(Source(changed))


@pytest.mark.by_default("*_parts", "scalar-*_pitch")
@pytest.mark.parametrize("name", OF_PLANES)
@pytest.mark.parametrize("place", ("scalar", "kernel"))
def test_what_no_list_reserves_is_refused_by_what_was_made(
    name: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the list the program, or its text, shows that one name has two meanings."""
    text = SPLIT + (f"fuse_epilogue acc * {name}\n" if place == "scalar" else f"kernel {name}\n")
    monkeypatch.setattr(reserved, "STEMS", ())
    monkeypatch.setattr("gemmgen.schedule.reserved._letter_names", lambda *_: ())
    with pytest.raises(ScheduleError, match="two things called") as refused:
        compile_source(Source(text))
    (mistake,) = refused.value.mistakes
    assert mistake.span is not None and text[mistake.span.start : mistake.span.end] == name


def test_a_merged_name_does_not_pass_as_a_renamed_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The trial can fail: without its checks the scalar `A_parts` is taken for a tensor."""
    monkeypatch.setattr(reserved, "STEMS", ())
    for check in ("check_buffers", "check_identifiers"):
        monkeypatch.setattr(f"gemmgen.pipeline.{check}", lambda *_: None)
    with pytest.raises((AssertionError, IndexError, ValueError)):
        outcome(read(SAMPLE[0]), "own_scale", "A_parts")


def unknown(text: str) -> set[str]:
    names = names_of(text)
    assert not names.repeated
    return {name for name in names.loose if not language_word(name)}


@pytest.mark.parametrize("path", GOLDENS, ids=lambda path: path.stem)
def test_every_name_of_a_text_is_declared_once(path: Path) -> None:
    """So the scanner reads every declaration there is, and what is not declared is reserved."""
    assert unknown(path.read_text(encoding="utf-8")) == set()


@pytest.mark.parametrize("template", TEMPLATES)
def test_every_name_of_a_template_is_declared_once(template: str) -> None:
    assert unknown(compile_source(Source(schedule_text(template))).text) == set()


BEFORE = "// ---- kernel ----\nconstexpr int BM = 1;\nvoid f(int A, float *B) {\n"


@pytest.mark.parametrize(
    ("body", "repeated"),
    [
        ("int x = A;", ()),
        ("int A = 1;", ("A",)),
        ("const int x = A, BM = 2;", ("BM",)),
        ("for (int x = 0; x < A; ++x) { float B[4]; }", ("B",)),
        ("for (int x = 0; x < A; ++x) x = A; int x = 1;", ()),
        ("{ int x = 1; } { int x = 2; }", ()),
        ("int x = 1; if (A) { auto *const x = B; }", ("x",)),
        ("const auto g = [&](int B) { return B; }; int y = 1, A;", ("B", "A")),
        ("float (&A)[4] = *B;", ("A",)),
        ("x = A * BM; y = (long long)A; static_cast<int>(A);", ()),
        ("int f = 1;", ("f",)),
        ("template <int R> struct s { int q[R]; }; s<1> t; int s;", ("s",)),
    ],
)
def test_scopes(body: str, repeated: tuple[str, ...]) -> None:
    assert names_of(f"{BEFORE}{body}\n}}\n").repeated == repeated

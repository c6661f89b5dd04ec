"""Any file is answered quickly, by a located error and not by a traceback."""

from __future__ import annotations

from pathlib import Path
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemmgen.base.errors import ScheduleError, UsageError
from gemmgen.base.source import Source
from gemmgen.language import fmt_source, parse_schedule
from gemmgen.schedule.read import decode, read_source

from .helpers import SEVEN, refused, schedule

HOSTILE = {
    "a number of many digits": "tile m=" + "9" * 200_000 + " n=1",
    "a number of the epilogue of many digits": "fuse_epilogue " + "9" * 200_000,
    "a limit of many digits": "require threads <= " + "9" * 200_000,
    "brackets in brackets": "fuse_epilogue " + "(" * 100_000,
    "signs on signs": "fuse_epilogue " + "-" * 5_000 + "acc",
    "a long sum": "fuse_epilogue " + "+".join(["acc"] * 5_000),
    "a deep sum": "fuse_epilogue " + "+".join(["acc"] * 100),
    "too many statements": "tile m=1 n=1\n" * 19_000,
    "a long name": "kernel " + "x" * 200_000,
    "a long word": "x" * 200_000,
    "many operands": "vectorize " + "A " * 5_000,
    "many letters": "gemm C[" + ",".join(f"m{i}" for i in range(5_000)) + "] = A[m] * B[m]",
    "a large set": "tile n=1 m={" + ",".join(map(str, range(1, 5_000))) + "}",
    "open brackets in every line": "fuse_epilogue (()\n" * 900,
    "a terminal's escape": "\x1b[31mtile",
    "a direction mark": "tile m=1\u202e n=2",
    "NUL": "tile\0",
    "a large file": "#" * 300_000,
    "a lone surrogate": "tile \ud800",
}


@pytest.mark.by_default(but=("many letters",))
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_text_is_refused_quickly(text: str) -> None:
    start = process_time()
    said = refused(text).render()
    assert process_time() - start < 4
    assert len(said) < 20_000
    assert all(c == "\n" or c.isprintable() for c in said)


def test_a_sum_of_sixty_terms_is_taken() -> None:
    schedule("fuse_epilogue " + " + ".join(["acc"] * 60))


@given(st.text(max_size=60))
def test_any_text_is_a_schedule_or_an_error(text: str) -> None:
    for read in (lambda: parse_schedule(Source(text)), lambda: fmt_source(Source(text))):
        try:
            read()
        except ScheduleError as error:
            assert error.render()


@given(st.data())
def test_a_schedule_cut_or_garbled_is_one_or_an_error(data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(SEVEN)))
    stop = data.draw(st.integers(start, len(SEVEN)))
    middle = data.draw(st.text(alphabet=SEVEN + "{}()<>=!&|#.\n", max_size=8))
    try:
        schedule(SEVEN[:start] + middle + SEVEN[stop:])
    except ScheduleError as error:
        assert error.render()


def test_a_file_is_read_without_mark_and_with_plain_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "x.sched"
    path.write_bytes(b"\xef\xbb\xbftile m=8 n=8\r\npad A by=4\r\n")
    assert read_source(str(path)) == Source("tile m=8 n=8\npad A by=4\n", str(path))


def test_standard_input_is_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    from io import BytesIO, TextIOWrapper

    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(b"tile m=8 n=8\n")))
    assert read_source("-") == Source("tile m=8 n=8\n", "<stdin>")


def test_what_cannot_be_read_is_a_usage_error(tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(b"#" * (256 * 1024 + 1))
    for path in (str(tmp_path / "none"), str(tmp_path), str(large), "a\0b"):
        with pytest.raises(UsageError):
            read_source(path)


def test_bytes_that_are_no_text_are_a_located_error() -> None:
    with pytest.raises(ScheduleError) as caught:
        decode("tile m=8\n# größe ".encode() + b"\xff\n", "x.sched")
    assert (caught.value.line, caught.value.column) == (2, 9)
    with pytest.raises(ScheduleError):
        decode("tile m=8 n=8\n".encode("utf-16"), "x.sched")

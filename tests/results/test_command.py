"""``gemmgen cache``: what is stored, why one is chosen, files for other machines, and clearing."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli.running import gemmgen

from gemmgen.explore.results.results_store import Results
from gemmgen.explore.results.shipped_table import shipped

from .samples import H200, SHAPE, result
from .test_store import DAMAGE, own

NT = "gemm C[m, n] = A[m, k] * B[n, k]\n"
ASKED = ("--shape", "x".join(map(str, SHAPE)), "--dtype", "f16")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def stored() -> None:
    other = replace(H200, gpu="NVIDIA A100-SXM4-80GB", arch="sm_80")
    Results.open().record(
        result(64, 20.0),
        result(32, 30.0),
        result(64, 40.0, (4096, 1024, 512)),
        result(64, 50.0, machine=other),
        result(64, 60.0, text=NT + result().schedule.partition("\n")[2]),
    )


def test_without_results_the_list_says_so() -> None:
    assert gemmgen("cache", "list").stdout == "no results\n"
    found = gemmgen("cache", "list", "--shipped")
    assert found.stdout.count(" shipped ") == len(shipped().all())


def test_results_are_listed_by_product_and_gpu() -> None:
    stored()
    found = gemmgen("cache", "list")
    assert (found.exit_code, found.stderr) == (0, "")
    titles = [x for x in found.stdout.splitlines() if x and not x.startswith(" ")]
    assert titles == [
        "C[m, n] = A[m, k] * B[k, n]; dtype A=f16 B=f16 C=f16 on NVIDIA A100-SXM4-80GB: 1 result",
        "C[m, n] = A[m, k] * B[k, n]; dtype A=f16 B=f16 C=f16 on NVIDIA H200: 3 results",
        "C[m, n] = A[m, k] * B[n, k]; dtype A=f16 B=f16 C=f16 on NVIDIA H200: 1 result",
    ]
    row = "2048x1024x512  20 us 107 0.950 2026-11-20 tune 0.1.0 580.159.04 13.0"
    assert row.split() in [x.split() for x in found.stdout.splitlines()]


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        ((), 5),
        (("--gpu", "H200"), 4),
        (("--gpu", "a100-80gb"), 1),
        (("--gpu", "NVIDIA A100-SXM4-80GB"), 1),
        (("--gpu", "T4"), 0),
        (("--gemm", "Y[r, o] = X[r, i] * W[o, i]"), 1),
        (("--shape", "2048x1024x512"), 4),
        (("--shape", "64,b=3"), 0),
        (("--shape", "4096x1024x512", "--gpu", "H200"), 1),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_filters_choose_what_is_listed_exported_and_cleared(
    filters: tuple[str, ...], count: int, folder: Path
) -> None:
    stored()
    listed = json.loads(gemmgen("cache", "list", "--json", *filters).stdout)
    assert len(listed["results"]) == count
    assert gemmgen("cache", "export", "x.json", *filters).exit_code == 0
    assert json.loads((folder / "x.json").read_text()) == listed
    assert gemmgen("cache", "export", "-", *filters).stdout == (folder / "x.json").read_text()
    cleared = gemmgen("cache", "clear", *(filters or ("--all",)))
    assert cleared.exit_code == 0 and f"{count} result" in cleared.stderr
    assert len(own()) == 5 - count


def test_clearing_asks_what() -> None:
    stored()
    for arguments in ((), ("--all", "--gpu", "H200"), ("--all", "--stale")):
        found = gemmgen("cache", "clear", *arguments)
        assert found.exit_code == 2 and "--all" in found.stderr
    assert len(own()) == 5


def test_stale_results_are_marked_and_cleared() -> None:
    stored()
    Results.open().record(replace(result(128), code="0" * 24))
    listed = gemmgen("cache", "list", "--check").stdout
    assert [x.endswith(" stale") for x in listed.splitlines()].count(True) == 1
    assert "1 result removed" in gemmgen("cache", "clear", "--stale").stderr
    assert len(own()) == 5


def test_the_choice_is_explained() -> None:
    stale, near = replace(result(16, 5.0), code="0" * 24), result(64, 10.0, (2048, 1024, 500))
    Results.open().record(result(64, 20.0), result(32, 30.0), stale, near)
    far = result(64, 10.0, (64, 64, 64))
    Results.open().record(far)
    lines = gemmgen("cache", "explain", *ASKED).stdout.splitlines()
    assert lines[0].startswith("2048x1024x512 on H200: measured: 107 TFLOP/s on NVIDIA H200, 2026-")
    fates = [x.split(" tune ")[1].strip() for x in lines if " tune " in x]
    assert fates[0] == "stale: this version emits another text for its schedule"
    assert fates[1:3] == ["chosen", "slower"]
    assert fates[3].endswith("not needed") and fates[4].endswith("too far")
    other = gemmgen("cache", "explain", "--shape", "77", "--dtype", "f64").stdout
    assert "the cost model's choice" in other and "no results at this shape" in other


def test_a_file_takes_results_to_another_machine(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored()
    before = own()
    gemmgen("cache", "export", "x.json")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "elsewhere"))
    found = gemmgen("cache", "import", "x.json")
    assert (found.exit_code, found.stderr) == (0, "x.json: 5 results\n")
    assert own() == [replace(x, origin="imported") for x in before]
    assert gemmgen("cache", "import", "x.json").exit_code == 0 and len(own()) == 5
    assert "imported" in gemmgen("suggest", *ASKED).stdout


def test_an_older_result_replaces_no_newer_one(folder: Path) -> None:
    Results.open().record(result(64, 20.0))
    gemmgen("cache", "export", "x.json")
    newer = result(64, 25.0, date="2026-11-22T00:00:00.000+00:00")
    Results.open().record(newer)
    gemmgen("cache", "import", "x.json")
    assert own() == [newer]


def changed(key: str, value: object) -> Callable[[dict[str, Any]], object]:
    return lambda x: x["results"][1].__setitem__(key, value)


def schedule(*change: str) -> Callable[[dict[str, Any]], object]:
    return lambda x: changed("schedule", x["results"][1]["schedule"].replace(*change))(x)


MISTAKES: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "a newer format": (lambda x: x.__setitem__("format", 2), "x.json: format 2 is newer than 1"),
    "format 0": (lambda x: x.__setitem__("format", 0), "has these keys"),
    "format true": (lambda x: x.__setitem__("format", True), "has these keys"),
    "no results": (lambda x: x.pop("results"), "has these keys"),
    "another key": (lambda x: x.__setitem__("more", 1), "unknown key 'more'"),
    "a result that is a list": (
        lambda x: x["results"].__setitem__(1, []),
        "x.json: results[1]: a result is an object",
    ),
    "a missing key": (lambda x: x["results"][1].pop("code"), "results[1] lacks the key 'code'"),
    "a key more": (changed("more", 1), "results[1] has an unknown key 'more'"),
    "a number as schedule": (changed("schedule", 5), "results[1].schedule = 5"),
    "a long schedule": (changed("schedule", "#" * 20_001), "at most 20,000 characters"),
    "a misspelt directive": (
        schedule("cache_shared", "cache_shraed"),
        "x.json: results[1].schedule:4:1: error: ",
    ),
    "a set": (schedule("m=32", "m={32, 64}"), "x.json: results[1].schedule:3:"),
    "a schedule that a pass refuses": (schedule("k=16", "k=5"), "x.json: results[1].schedule:"),
    "an empty schedule": (changed("schedule", ""), "x.json: results[1].schedule:1:1: error"),
    "a shape of two": (changed("shape", [1, 2]), "results[1].shape = [1, 2]: it is a list of 3"),
    "a shape of texts": (changed("shape", ["1", 2, 3]), "results[1].shape = "),
    "a shape of zero": (changed("shape", [0, 2, 3]), "integers from 1 to"),
    "a shape of true": (changed("shape", [True, 2, 3]), "results[1].shape = "),
    "a large shape": (changed("shape", [2**31, 2, 3]), "results[1].shape = "),
    "pitches of two": (changed("pitches", [0, 0]), "results[1].pitches = "),
    "a short pitch": (changed("pitches", [5, 0, 0]), "results[1].pitches: lda = 5: a row of A"),
    "no name of a GPU": (changed("gpu", ""), "results[1].gpu = ''"),
    "an escape in a GPU's name": (changed("gpu", "\x1b[2J"), "results[1].gpu = '\\x1b[2J'"),
    "another architecture": (changed("arch", "gfx90a"), "results[1].arch = 'gfx90a'"),
    "a driver with blanks": (changed("driver", "1 2"), "results[1].driver = '1 2'"),
    "CUDA as a number": (changed("cuda", 13.0), "results[1].cuda = 13.0"),
    "no time": (changed("seconds", 0), "results[1].seconds = 0: it is a number of seconds above 0"),
    "a negative time": (changed("seconds", -1.0), "results[1].seconds = -1.0"),
    "a text as time": (changed("seconds", "1"), "results[1].seconds = '1'"),
    "true as time": (changed("seconds", True), "results[1].seconds = True"),
    "a time without end": (changed("seconds", 1e300), "results[1].seconds = 1e+300"),
    "a time that no GPU reaches": (changed("seconds", 1e-9), "2,147,484 TFLOP/s"),
    "a vendor of zero seconds": (changed("vendor", 0.0), "results[1].vendor = 0.0"),
    "no date": (changed("date", "yesterday"), "results[1].date = 'yesterday': it is a date in ISO"),
    "a date as number": (changed("date", 20261120), "results[1].date = 20261120"),
    "a date in the future": (changed("date", "2999-01-01"), "it is in the future"),
    "a date out of range": (changed("date", "0001-01-01T00:00:00+14:00"), "results[1].date = "),
    "another origin": (changed("origin", "guess"), "results[1].origin = 'guess'"),
    "a list as origin": (changed("origin", []), "results[1].origin = []"),
    "a short hash": (changed("code", "abc"), "results[1].code = 'abc': it is 24 digits"),
    "no version": (changed("version", ""), "results[1].version = ''"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_a_file_is_one_located_error(mistake: str, folder: Path) -> None:
    Results.open().record(result(64), result(32))
    gemmgen("cache", "export", "x.json")
    gemmgen("cache", "clear", "--all")
    value = json.loads((folder / "x.json").read_text())
    change, wanted = MISTAKES[mistake]
    change(value)
    (folder / "x.json").write_text(json.dumps(value))
    found = gemmgen("cache", "import", "x.json")
    assert found.exit_code == 2 and wanted in found.stderr, found.stderr
    assert found.stdout == "" and found.stderr.count("error") <= 1 and own() == []


TEXTS: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "x.json:1:1: this is not JSON"),
    "cut off": (b'{"format": 1,\n "results": [', "x.json:2:14: this is not JSON"),
    "a list": (b"[]", "x.json: a file of results is an object"),
    "a number": (b"1", "x.json: a file of results is an object"),
    "not UTF-8": (b'{"format": "\xff"}', "x.json is not UTF-8 text: byte 12"),
    "NaN": (b'{"format": 1, "results": [NaN]}', "x.json: NaN is not a number of JSON"),
    "deep": (b"[" * 100_000, "x.json is not a file of results"),
    "a long integer": (b'{"format": ' + b"1" * 5000 + b"}", "x.json is not a file of results"),
    "a key twice": (b'{"format": 1, "format": 1, "results": []}', "'format' is given twice"),
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_that_is_no_file_of_results_is_refused(text: str, folder: Path) -> None:
    data, wanted = TEXTS[text]
    (folder / "x.json").write_bytes(data)
    found = gemmgen("cache", "import", "x.json")
    assert found.exit_code == 2 and wanted in found.stderr, found.stderr
    assert own() == []


def test_a_file_without_results_is_one() -> None:
    assert gemmgen("cache", "export", "-").stdout == '{"format": 1, "results": [\n\n]}\n'


def test_files_that_cannot_be_read_or_written(folder: Path) -> None:
    assert "none.json: no such file" in gemmgen("cache", "import", "none.json").stderr
    assert gemmgen("cache", "export", "none/x.json").exit_code == 2
    assert "is a folder" in gemmgen("cache", "export", str(folder)).stderr


CALLS = (
    ("list",),
    ("export", "-"),
    ("import", "x.json"),
    ("clear", "--all"),
)


@pytest.mark.by_default(but=("zeros", "half", "newer", "other tables"))
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_store_that_cannot_be_used_is_one_clear_error(
    damage: str, store: Path, folder: Path
) -> None:
    Results.open().record(result())
    gemmgen("cache", "export", "x.json")
    change, wanted = DAMAGE[damage]
    change(store)
    for call in CALLS:
        if damage == "odd values" and call[0] == "import":
            continue
        found = gemmgen("cache", *call)
        assert (found.exit_code, found.stdout) == (2, "")
        assert wanted in found.stderr and found.stderr.count("\n") == 1
    said = gemmgen("suggest", *ASKED)
    assert said.exit_code == 0 and said.stderr.count("\n") == 1 and wanted in said.stderr
    assert "An estimate, not measured" in said.stdout
    explained = gemmgen("cache", "explain", *ASKED)
    assert explained.exit_code == 0 and "the cost model's choice" in explained.stdout


def test_without_a_cache_it_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMMGEN_CACHE", "0")
    found = gemmgen("cache", "list")
    assert found.exit_code == 2 and "GEMMGEN_CACHE=0 disables the cache" in found.stderr
    monkeypatch.delenv("GEMMGEN_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    found = gemmgen("cache", "list")
    assert found.exit_code == 2 and "can't be written" in found.stderr
    assert gemmgen("suggest", *ASKED).exit_code == 0

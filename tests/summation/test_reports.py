"""The summation order in the reports of ``explain`` and ``diff``."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from cli.running import EXAMPLES, gemmgen

from gemmgen.summation import order_text
from summation.schedules import lanes, order_of, tiled

SLICES = tiled("m=16 n=16 k=8", "split_k parts=3\n")


def files(folder: Path, *texts: str) -> list[str]:
    paths = [folder / f"{number}.sched" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text, encoding="utf-8")
    return list(map(str, paths))


def test_explain_says_how_an_element_is_summed() -> None:
    said = gemmgen("explain", EXAMPLES / "split_k.sched", "--shape", "512", "--no-next").stdout
    section = said.partition("summation order\n")[2].partition("\n\n")[0]
    assert "one fmaf per k, k ascending; f32 x f32, accumulated in f32" in section
    assert "4; slice s begins at s * ceil(ceil(K / 16) / 4) * 16" in section
    assert "K alone" in section


def test_explain_says_it_as_json() -> None:
    result = gemmgen("explain", EXAMPLES / "split_k.sched", "--shape", "512", "--json", "--no-next")
    found = json.loads(result.stdout)["summation_order"]
    assert found["slices"] == {"count": 4, "step": 16, "groups": 1, "ordered": True}
    assert (found["instruction"], found["depth"], found["walk"]) == ("fma", 1, "ascending")
    assert found["depends"] == [] and found["reproducible"]


@pytest.mark.proof
def test_diff_says_that_bits_are_equal(tmp_path: Path) -> None:
    paths = files(tmp_path, tiled("m=16 n=16 k=8"), tiled("m=32 n=16 k=16"))
    said = gemmgen("diff", *paths, "--shape", "64", "--no-text").stdout
    assert "summation order\n  same summation order: equal bits\n" in said
    found = json.loads(gemmgen("diff", *paths, "--shape", "64", "--json").stdout)
    wanted = {"same": True, "equal_bits": True, "differs": [], "changes": []}
    assert found["summation_order"] == wanted


@pytest.mark.proof
def test_diff_says_what_differs(tmp_path: Path) -> None:
    paths = files(tmp_path, tiled("m=16 n=16 k=8"), SLICES)
    said = gemmgen("diff", *paths, "--shape", "64", "--no-text").stdout
    assert "summation order: bits may differ" in said
    assert re.search(r"slices of K +- +3; slice s begins at s \* ceil", said)
    found = json.loads(gemmgen("diff", *paths, "--shape", "64", "--json").stdout)
    found = found["summation_order"]
    assert (found["same"], found["differs"]) == (False, ["slices"])
    assert [change["name"] for change in found["changes"]] == ["slices of K"]


@pytest.mark.proof
def test_diff_says_that_blocks_add_as_they_arrive(tmp_path: Path) -> None:
    atomic = SLICES.replace("parts=3", "parts=3 reduce=atomic")
    paths = files(tmp_path, atomic, atomic.replace("m=16 n=16", "m=32 n=16"))
    said = gemmgen("diff", *paths, "--shape", "64", "--no-text").stdout
    assert order_text.SAME_BUT_ATOMIC in said and order_text.SAME not in said
    found = json.loads(gemmgen("diff", *paths, "--shape", "64", "--json").stdout)
    assert not found["summation_order"]["equal_bits"]


def test_every_aspect_is_said() -> None:
    """A row differs if the values do."""
    texts = [
        tiled("m=16 n=16 k=8"),
        SLICES,
        lanes("m=16 n=16 k=16"),
        lanes("m=16 n=16 k=16", how=" promote=32"),
        SLICES.replace("parts=3", "parts=3 reduce=atomic"),
        tiled("m=16 n=16 k=8").replace("[m, n]", "[n, m]") + "fuse_epilogue relu(acc)\n",
    ]
    for first in texts:
        for second in texts:
            changes = order_text.changes(order_of(first), order_of(second))
            assert bool(changes) == (first != second)

"""Scratch memory as the header and the host program state it is what the kernel needs, tiles beyond
C that complete a cluster among it."""

from __future__ import annotations

import re
from math import ceil
from pathlib import Path

import pytest

from gemmgen.base.source import Source
from gemmgen.host_texts import host_program
from gemmgen.pipeline import Emitted, compile_source

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ("split_k", "hopper/split_k", "best/deep")
GROUPS = "split_k parts=4 groups=2"
EXTENTS = {"M": 64, "N": 64, "K": 64}
SHAPES = ((261, 133, 391), (1, 1, 1), (512, 256, 64))


def kernels() -> dict[str, Emitted]:
    texts = {name: (EXAMPLES / f"{name}.sched").read_text("utf-8") for name in NAMES}
    clustered = texts["hopper/split_k"]
    texts["groups"] = re.sub(r"split_k .*", GROUPS, clustered)
    texts["a cluster along both"] = re.sub(r"cluster .*", "cluster m=2 n=2", clustered)
    return {name: compile_source(Source(text)) for name, text in texts.items()}


@pytest.mark.parametrize("name", (*NAMES, "groups", "a cluster along both"))
def test_sizes_that_are_stated_are_those_that_are_needed(name: str) -> None:
    emitted = kernels()[name]
    interface, main = emitted.interface, host_program(emitted, EXTENTS, "kernel.cu")
    (tiles,) = re.findall(r"const long long tiles = (.*);\n", main.partition("int main")[2])
    assert interface.scratch
    for shape in SHAPES:
        extents = dict(zip("MNK", shape, strict=True))
        for param in interface.scratch:
            needed = interface.scratch_elements(param, extents)
            (stated,) = re.findall(rf"//     {param.name}: (.*?) bytes", emitted.text)
            assert eval(stated, {"ceil": ceil, **extents}) == needed * param.item
            (count,) = re.findall(rf"{param.name} = host::zeros<.*>\((.*)\);", main)
            known = {"tiles": eval(tiles.replace("LL", "").replace("/", "//"), extents.copy())}
            assert eval(count, known) == needed

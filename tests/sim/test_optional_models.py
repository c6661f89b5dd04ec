"""Models that a text does not call are left out of its header, and no others."""

from __future__ import annotations

import re
import subprocess
from importlib import resources
from pathlib import Path

import pytest
from pipeline.running import emitted, example

from gemmgen.sim import toolchain, unit
from gemmgen.sim.unit import unit_text

FOLDER = Path(str(resources.files("gemmgen.sim")))


def preprocessed(*defined: str) -> str:
    """``host.h`` as g++ sees it where macros are defined."""
    toolchain.require_gxx()
    given = [f"-D{name}" for name in defined]
    command = ["g++", "-std=c++17", "-E", "-P", *given, "-x", "c++", str(FOLDER / "host.h")]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(("macro", "header", "family"), unit._OPTIONAL)
def test_what_is_left_out_is_found_by_its_name(macro: str, header: str, family: str) -> None:
    names = r"\b(?:void|bool|SpecialRegister)\s+(\w+)\("
    all_of = set(re.findall(names, preprocessed()))
    without = set(re.findall(names, preprocessed(macro)))
    models = {name for name in all_of - without if not name.startswith("gg_")}
    own = unit._models_in(header) | {"is_integer"}  # which the header's models alone call
    assert len(models) > 20
    assert [name for name in models if name not in own and not name.startswith(family)] == []


@pytest.mark.parametrize(
    ("name", "left_out"),
    [
        ("tiled", ["GG_NO_TMA", "GG_NO_WGMMA"]),
        ("mma/ahead", ["GG_NO_TMA", "GG_NO_WGMMA"]),
        ("hopper/tma", ["GG_NO_WGMMA"]),
        ("hopper/wgmma", []),
    ],
)
def test_a_text_has_the_models_that_it_calls(name: str, left_out: list[str]) -> None:
    found = emitted(example(name))
    text = unit_text(found.text, found.interface)
    assert re.findall(r"^#define (GG_NO_\w+)$", text, re.MULTILINE) == left_out

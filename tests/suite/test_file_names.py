"""A file's name says what it holds: two files of one stem hold the same thing, for a reason."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "gemmgen"
SUFFIXES = {".py", ".cpp", ".h"}

STAGES = {"ir", "passes", "expand", "lower", "interpreter", "prove", "sim", "draw"}
"""Folders in which a mechanism may have a file each, of one name."""

SHARED = {
    # A command, and what it does.
    "bench": ("cli", "gpu"),
    "explain": ("analyze", "cli"),
    "fmt": ("cli", "schedule"),
    "ladder": ("cli", "passes"),
    # Two sides of one thing, or a thing and the drawing of it.
    "launcher": ("proof", "sim"),
    "roofline": ("analyze", "draw"),
    "pre_pass_launches": ("emit", "gpu"),
    "scales": ("numerics", "schedule"),
    "tensor_maps": ("emit", "gpu", "lower"),
    # Mechanisms whose files say so in other words.
    "lane_matrices": ("ir", "prove"),
    "warp_roles": ("expand", "interpreter", "ir", "prove"),
}
"""Stems of files in several folders, and these folders, but for mechanisms by ``is_named``."""


def is_named(path: Path) -> bool:
    """Whether a Python file says in its first sentences that it is about what its name names."""
    if path.suffix != ".py":
        return True
    said = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n\n")
    words = re.findall(r"[a-z]+", said[0].lower())
    return all(any(w.startswith(part[:3]) for w in words) for part in path.stem.split("_"))


@pytest.mark.proof
def test_files_of_one_stem_hold_the_same_thing() -> None:
    """In one folder they are two languages' sides of it."""
    found: defaultdict[str, list[Path]] = defaultdict(list)
    for path in sorted(p for p in ROOT.rglob("*") if p.suffix in SUFFIXES):
        if not path.name.startswith("__"):
            found[path.stem].append(path)
    shared: dict[str, tuple[str, ...]] = {}
    for stem, paths in found.items():
        folders = tuple(dict.fromkeys(path.parent.name for path in paths))
        assert len({(path.parent, path.suffix) for path in paths}) == len(paths)
        mechanism = set(folders) <= STAGES and all(map(is_named, paths))
        if len(folders) > 1 and not mechanism:
            shared[stem] = folders
    assert shared == SHARED


SHARED_CLASSES = {
    # The declared kernel, and the one that a user calls.
    "Kernel": ("gpu.launch", "ir.nodes"),
    # The directive, and the field of a tile that it sets.
    "Swizzle": ("ir.buffers", "passes.swizzle"),
}
"""Names of several classes, and their modules."""


@pytest.mark.proof
def test_a_class_has_a_name_of_its_own() -> None:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(ROOT.rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(module)
    shared = {name: tuple(modules) for name, modules in found.items() if len(modules) > 1}
    assert shared == SHARED_CLASSES

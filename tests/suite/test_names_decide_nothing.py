"""No beginning or end of a name decides what is compiled: a role is a field, a mode is a word.

``test_buffer_names`` looks for what buffers' names end in; here is every call of ``startswith``,
``endswith``, ``removeprefix`` and ``removesuffix``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "gemmgen"
AFFIXES = {"startswith", "endswith", "removeprefix", "removesuffix"}

READERS = {
    "api": "paths, which differ from texts of schedules by their ends",
    "base": "files and byte order marks",
    "cli": "paths, options and lines of a table",
    "explore": "lines of schedules, names of GPUs",
    "functions": "names of PyTorch's types, names of GPUs",
    "library": "modules and types of array libraries",
    "fuzz": "classes of random schedules, which are phrases",
    "gpu": "libraries, listings and names of GPUs",
    "proof": "lines of a text and names of GPUs",
    "prove": "functions of the lowered program: conversions are named after types",
    "schedule": "what a user wrote",
    "sim": "the emitted text, PTX mnemonics and files of models",
    "torch": "names of PyTorch's types",
}
"""Rooms that read texts of others, and what they read."""

ALLOWED = {
    ("analyze/resources.py", "target.endswith('a')"): "sm_90a: a target's suffix is CUDA's",
    ("analyze/resources.py", "arch.removeprefix('sm_')"): "the number of a target",
    ("calling/inputs.py", "case.data.endswith(which)"): "kinds of data are phrases",
    ("draw/timeline_lanes.py", "who.endswith('s')"): "a sentence's verb",
    ("emit/ctext.py", "inner.startswith(op)"): "- -x, not --x",
    ("emit/header.py", "held.removeprefix('1 x ')"): "a formula in a comment",
    ("emit/line_breaks.py", "code.startswith('//')"): "a comment of the text",
    ("emit/main/host_program.py", "wanted.target.endswith('a')"): "sm_90a",
    ("emit/main/own_names.py", "name.startswith(_PREFIXES)"): "macros of C's headers",
    ("emit/printing.py", "name.endswith('.j2')"): "a file in the folder of templates",
    ("emit/scopes.py", "last.endswith('_detail')"): "the emitted namespace, read off a text",
    ("expand/epilogue_store.py", "o.startswith('async_copy')"): "a directive that is cited",
    ("expand/k_range.py", "o.startswith('residue')"): "a directive that is cited",
    ("expand/pipeline_lanes.py", "o.startswith('split_k')"): "a directive that is cited",
    ("expand/pipeline_staged.py", "o.startswith('async_copy')"): "a directive that is cited",
    ("expand/ring.py", "o.startswith('unroll')"): "a directive that is cited",
    ("ir/clusters.py", "origin.startswith('cluster')"): "a directive that is cited",
    ("ir/exprreader.py", "number.endswith('f64')"): "a number in the IR's text",
    ("ir/exprreader.py", "number.removesuffix('f64')"): "a number in the IR's text",
    ("ir/exprtext.py", "repr(value).removesuffix('.0')"): "a number in the IR's text",
    ("ir/instruction_table.py", "name.startswith('*')"): "the row's own notation of operands",
    ("ir/names.py", "tensor.startswith('_')"): "a name that is made: load_A, but load_a of _a",
    ("ir/ptx_targets.py", "f'{instruction}.'.startswith(f'{row.ptx}.')"): "PTX mnemonics",
    ("ir/target.py", "target.removeprefix('sm_')"): "the number of a target",
    ("ir/textcursor.py", "self.text.startswith(' ', self.at)"): "the IR's text",
    ("ir/textcursor.py", "self.text.startswith(literal, self.at)"): "the IR's text",
    ("ir/textvalues.py", "cursor.text.startswith('\"', cursor.at)"): "the IR's text",
}
"""Calls elsewhere, and what they are about: no name of a buffer, a tensor or a parameter."""


def calls(source: str) -> Iterator[str]:
    """The calls that look at the beginning or the end of a string, as Python prints them."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Attribute(attr=name)) if name in AFFIXES:
                yield ast.unparse(node)
            case _:
                pass


def found(root: Path) -> set[tuple[str, str]]:
    """All of them in rooms that see programs, with their files."""
    return {
        (name, call)
        for path in root.rglob("*.py")
        if (name := path.relative_to(root).as_posix()).partition("/")[0] not in READERS
        for call in calls(path.read_text(encoding="utf-8"))
    }


@pytest.mark.proof
def test_each_look_at_a_part_of_a_name_has_a_reason() -> None:
    assert found(ROOT) == ALLOWED.keys()
    assert all((ROOT / room).is_dir() for room in READERS)


def test_a_planted_decision_is_found(tmp_path: Path) -> None:
    for room in ("lower", "cli"):
        (tmp_path / room).mkdir()
        (tmp_path / room / "planted.py").write_text('is_operand = buffer.name.endswith("_frag")\n')
    planted = {("lower/planted.py", "buffer.name.endswith('_frag')")}
    assert found(tmp_path) == planted and not planted & ALLOWED.keys()

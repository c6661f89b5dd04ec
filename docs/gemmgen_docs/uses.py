"""A page of examples/uses: its docstring, its schedules, its code."""

from __future__ import annotations

import ast

from gemmgen_docs import schedules
from gemmgen_docs.markdown import fence


def use(name: str, *files: str) -> str:
    """The docstring of ``name`` as text, the schedules ``files`` (by default that of its own name),
    and the code after the docstring."""
    path = schedules.EXAMPLES / "uses" / f"{name}.py"
    text = path.read_text(encoding="utf-8")
    first, *_ = ast.parse(text).body
    said = ast.get_docstring(ast.parse(text))
    assert said is not None, name
    code = "\n".join(text.splitlines()[first.end_lineno :]).strip()
    shown = [schedules.schedule(f"uses/{file}") for file in files or (name,)]
    return "\n".join([said, "", *shown, fence(code, "python", f"examples/uses/{name}.py")])


def helper() -> str:
    """The common code of the pages."""
    text = (schedules.EXAMPLES / "uses" / "run.py").read_text(encoding="utf-8")
    return fence(text, "python", "examples/uses/run.py")

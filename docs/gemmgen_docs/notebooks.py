"""Notebooks as pages: their text, their code and what it prints and draws, run when the site is
built."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gemmgen_docs.commands import ROOT
from gemmgen_docs.kept import kept
from gemmgen_docs.markdown import fence

FOLDER = ROOT / "examples" / "notebooks"
SECONDS = 300
"""The time limit of one cell."""
OUTPUT = " { .text .output }"
"""The kind of block that is what a cell printed."""
_LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


def notebook(name: str, run: Callable[[str], list[Any]] | None = None) -> str:
    """A page of ``examples/notebooks/name.ipynb``, with its outputs.

    ``run`` executes the text of a notebook, ``executed`` by default: tests give the cells that
    they executed.
    """
    text = (FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")
    return kept("notebook", lambda: "\n".join(_parts((run or executed)(text))), text)


def executed(text: str, **environment: str) -> list[Any]:
    """The cells with their outputs, executed with these variables besides the environment's.

    Raises ``CellExecutionError`` if a cell fails.
    """
    import nbclient
    import nbformat

    read = nbformat.reads(text, as_version=4)
    nbformat.validate(read)
    resources = {"metadata": {"path": str(FOLDER)}}
    path = os.environ.get("PYTHONPATH", "")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), path)))}
    env |= environment
    quiet = ["--log-level=ERROR"]  # the kernel warns of its connection, which is to this machine
    client = nbclient.NotebookClient(
        read, timeout=SECONDS, kernel_name="python3", resources=resources, extra_arguments=quiet
    )
    client.execute(env=env)
    return read.cells


def _parts(cells: list[Any]) -> Iterator[str]:
    for cell in cells:
        if cell.cell_type == "markdown":
            yield linked(cell.source).replace("<details>", "<details markdown>") + "\n"
            continue
        yield fence(cell.source, "python")
        for output in cell.outputs:
            yield _shown(output)


def _shown(output: Any) -> str:
    """What a cell printed or drew; a notebook's warnings are not shown."""
    if output.output_type == "stream":
        return fence(output.text, OUTPUT) if output.name == "stdout" else ""
    data = output.get("data", {})
    if "image/svg+xml" in data:
        return f'\n<figure class="drawing">{data["image/svg+xml"].strip()}</figure>\n'
    return fence(data.get("text/plain", ""), OUTPUT)


def linked(markdown: str) -> str:
    """Links of a notebook's text as those of its page, which lies in ``docs/tutorials``."""

    def moved(found: re.Match[str]) -> str:
        target = Path(found[1])
        if target.suffix == ".ipynb":
            return f"]({target.with_suffix('.md').name}"
        inside = (FOLDER / target).resolve().relative_to(ROOT / "docs")
        return f"](../{inside.as_posix()}"

    return _LINK.sub(moved, markdown)

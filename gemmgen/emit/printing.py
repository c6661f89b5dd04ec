"""The templates, compiled once for each user: their code is kept."""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import CodeType

import jinja2

from gemmgen.base import caches

FOLDER = Path(__file__).parent / "templates"
_CODE = "code"


def printed(template: str, view: Mapping[str, object]) -> str:
    """A template (``nodes/If.j2``) filled from a view, without the end of its last line."""
    return _template(template).render(view).rstrip("\n")


@cache
def _template(name: str) -> jinja2.Template:
    environment, codes = _codes()
    return jinja2.Template.from_code(environment, codes[name], {})


@cache
def _codes() -> tuple[jinja2.Environment, dict[str, CodeType]]:
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
    )
    return environment, _compiled(environment)


def _compiled(environment: jinja2.Environment) -> dict[str, CodeType]:
    """All templates by their names, from the user's cache if no file has changed."""
    texts = _texts()
    e = environment
    options = f"{e.trim_blocks} {e.lstrip_blocks} {e.autoescape} {e.undefined.__name__}"
    versions = f"{jinja2.__version__} {sys.version}"
    entry = f"templates-{caches.key(versions, options, *texts, *texts.values())}"
    kept = caches.read(entry)
    if kept is not None:
        return marshal.loads(kept[_CODE])
    codes = {name: environment.compile(text, name) for name, text in texts.items()}
    caches.write(entry, {_CODE: marshal.dumps(codes)})
    return codes


def _texts() -> dict[str, str]:
    """The templates' texts.  Paths are strings: ``Path`` takes as long as reading the files."""
    walked = ((folder, name) for folder, _, names in os.walk(FOLDER) for name in names)
    paths = sorted(os.path.join(folder, name) for folder, name in walked if name.endswith(".j2"))
    found = dict[str, str]()
    for path in paths:
        with open(path, encoding="utf-8") as file:
            found[path[len(str(FOLDER)) + 1 :].replace(os.sep, "/")] = file.read()
    return found

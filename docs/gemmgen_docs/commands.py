"""The command line: help texts and outputs of commands."""

from __future__ import annotations

import contextlib
import functools
import json
import shlex
import tempfile
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path

import click
from click.testing import CliRunner

from gemmgen.base import caches
from gemmgen.cli.group import COMMANDS, main
from gemmgen.gpu import compiler, device
from gemmgen_docs.markdown import fence

ROOT = Path(__file__).parents[2]
_RAN = "ran.json"
Files = tuple[tuple[str, str], ...]
"""Names of files, and their texts."""


@dataclass(frozen=True)
class Ran:
    """The output of a command."""

    out: str
    err: str
    exit_code: int


@functools.cache
def run(line: str, files: Files = ()) -> Ran:
    """``gemmgen ...`` run in this process, in the root of the repository; in a folder that has
    ``files`` alone if there are any.

    Outputs are cached by everything that they depend on, except on a machine with a GPU.
    """
    if device.missing() is None:
        return _run(line, files)
    entry = f"docs-{caches.key(_sources(), _compiler(), line, *chain(*files))}"
    kept = caches.read(entry)
    if kept is not None:
        return Ran(**json.loads(kept[_RAN]))
    ran = _run(line, files)
    caches.write(entry, {_RAN: json.dumps(asdict(ran)).encode()})
    return ran


@functools.cache
def _sources() -> str:
    """A key of the sources of the package and its examples, without those that no page uses."""
    files = sorted(p for folder in ("gemmgen", "examples") for p in (ROOT / folder).rglob("*.*"))
    used = [p for p in files if p.is_file() and not {*p.parts} & {"__pycache__", "fuzz"}]
    return caches.key(*(part for path in used for part in (str(path), path.read_bytes())))


@functools.cache
def _compiler() -> str:
    return compiler.available() or compiler.identity()


def _run(line: str, files: Files = ()) -> Ran:
    name, *words = shlex.split(line)
    assert name == "gemmgen", line
    with tempfile.TemporaryDirectory() as folder:
        for file, text in files:
            Path(folder, file).write_text(text, encoding="utf-8")
        with contextlib.chdir(folder if files else ROOT):
            result = CliRunner().invoke(main, words)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ran(result.stdout, result.stderr, result.exit_code)


def exists(line: str) -> bool:
    """Whether this version has the command of ``line``."""
    return shlex.split(line)[1] in COMMANDS


def output(line: str) -> str:
    """A command and its output, as a block."""
    ran = run(line)
    return fence(f"$ {line}\n{ran.out}{ran.err}", "console")


def command_line() -> str:
    """Each command's help."""
    parts = [fence(_help(main, None), "text")]
    with click.Context(main, info_name="gemmgen") as parent:
        for name in COMMANDS:
            found = main.get_command(parent, name)
            assert found is not None
            parts += [f"## gemmgen {name}\n", fence(_help(found, parent, name), "text")]
            if isinstance(found, click.Group):
                within = click.Context(found, parent=parent, info_name=name)
                for sub, each in found.commands.items():
                    parts.append(fence(_help(each, within, sub), "text"))
    return "\n".join(parts)


def _help(command: click.Command, parent: click.Context | None, name: str = "gemmgen") -> str:
    with click.Context(command, parent=parent, info_name=name, terminal_width=88) as context:
        return command.get_help(context)

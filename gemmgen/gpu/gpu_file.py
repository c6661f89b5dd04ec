"""A GPU from a TOML file, for ``--gpu my.toml`` and ``gpu="my.toml"``.

    name = "H100 96GB"      # that of the file, if it is left out
    arch = "sm_90"
    sms = 132
    clock = 1980            # MHz, boost
    memory = 3350           # GB/s
    cache = 50              # MiB of L2
    power = 700             # W

``KEYS`` has them all.  Every mistake in a file is reported with its line.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from gemmgen.base.errors import FileError, Mistake, UsageError
from gemmgen.base.record import record
from gemmgen.base.source import Source, Span, shown, value_shown
from gemmgen.base.units import numeral
from gemmgen.gpu.gpus import MIB, SMS, Gpu
from gemmgen.schedule.read import printable
from gemmgen.schedule.words import close

MOST_BYTES = 16 * 1024
"""Of a file; a GPU is about ten lines."""
LONGEST = 40
"""Characters of a name."""
_POSITION = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
"""Where an error of ``tomllib`` says that it is."""


@record
class Key:
    """A number from ``least`` to ``most``; ``whole``: an integer.  ``about``: what it is, with its
    unit.  ``required``: it has no default."""

    about: str
    least: float
    most: float
    whole: bool = False
    required: bool = True


KEYS = {
    "sms": Key("streaming multiprocessors", 1, 1024, whole=True),
    "clock": Key("the boost clock in MHz", 100, 10_000),
    "memory": Key("bandwidth of device memory in GB/s", 1, 100_000),
    "cache": Key("size of the L2 cache in MiB", 0.125, 10_000),
    "power": Key("power limit of the board in W", 1, 10_000),
    "l2": Key("bandwidth of the L2 cache in GB/s", 1, 1_000_000, required=False),
    "tensor_f16": Key(
        "multiply-adds a clock and SM of tensor cores: f16 or bf16, f32 accumulators",
        *(1, 65_536),
        whole=True,
        required=False,
    ),
    "tensor_i8": Key("the same of i8, i32 accumulators", 1, 65_536, whole=True, required=False),
    "tensor_f64": Key("the same of f64", 1, 65_536, whole=True, required=False),
    "lanes_f64": Key("f64 multiply-adds a clock and SM", 1, 65_536, whole=True, required=False),
}
"""The numbers of a file.  Those that are not required are the architecture's, and ``l2`` is not
known; a GeForce has half of the ``tensor_f16`` of its architecture."""
TEXTS = ("name", "arch")


def read_gpu(path: str | Path) -> Gpu:
    """The GPU of a file; raises ``UsageError`` with every mistake in it."""
    file = Path(path)
    source = _text(file)
    values = _parsed(source)
    mistakes = tuple(_mistakes(values, source))
    if mistakes:
        raise FileError(source, *mistakes)
    return _gpu(values, printable(file.stem)[:LONGEST])


def _text(file: Path) -> Source:
    name = printable(str(file))
    try:
        with file.open("rb") as opened:
            data = opened.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise UsageError(f"{name}: no such file; a GPU's file has its figures in TOML") from None
    except (OSError, ValueError) as wrong:
        reason = wrong.strerror if isinstance(wrong, OSError) else str(wrong)
        raise UsageError(f"{name} can't be read: {reason}") from None
    if len(data) > MOST_BYTES:
        raise UsageError(f"{name} has more than {MOST_BYTES // 1024} KiB; a GPU is ten lines")
    try:
        return Source(data.decode("utf-8"), name).cleaned()
    except UnicodeDecodeError as wrong:
        source = Source(data.decode("utf-8", errors="replace"), name)
        at = len(data[: wrong.start].decode("utf-8"))
        message = f"the byte 0x{data[wrong.start]:02X} is not UTF-8"
        mistake = Mistake(message, Span(at, at + 1), "save the file as UTF-8")
        raise FileError(source, mistake) from None


def _parsed(source: Source) -> Mapping[str, object]:
    """The file's keys; raises ``FileError`` for a mistake in its TOML."""
    try:
        return tomllib.loads(source.text)
    except RecursionError:
        why, span = "it is nested too deeply", None
    except ValueError as wrong:
        why, span = _complaint(str(wrong), source)
    hint = 'a line is `KEY = VALUE`, such as `sms = 132` or `arch = "sm_90"`'
    raise FileError(source, Mistake(f"this is not TOML: {why}", span, hint))


def _complaint(message: str, source: Source) -> tuple[str, Span | None]:
    """What ``tomllib`` says, and where."""
    found = _POSITION.search(message)
    if found is None:  # of Python's own, for a number with more digits than it converts
        return "a number has too many digits", None
    why = printable(message[: found.start()][:120])
    if found[1] is None:
        at = max(0, len(source.text.rstrip("\n")) - 1)
    else:
        lines = source.text.split("\n")[: int(found[1]) - 1]
        at = sum(len(line) + 1 for line in lines) + int(found[2]) - 1
    return why, Span(at, at + 1)


def _mistakes(values: Mapping[str, object], source: Source) -> Iterator[Mistake]:
    """Every key that is unknown, missing, or has a value that it does not take."""
    for name, value in values.items():
        span = _place(name, source)
        if name in KEYS:
            yield from _of_number(name, value, span)
        elif name == "arch":
            yield from _of_arch(value, span)
        elif name == "name":
            yield from _of_name(value, span)
        else:
            yield _unknown(name, value, span)
    required = ("arch", *(name for name, key in KEYS.items() if key.required))
    missing = [name for name in required if name not in values]
    if missing:
        about = KEYS[missing[0]].about if missing[0] in KEYS else f"one of {_archs()}"
        yield Mistake(
            f"the file has no {', '.join(f'`{name}`' for name in missing)}",
            None,
            f"add a line `{missing[0]} = ...`: {about}",
        )


def _unknown(name: str, value: object, span: Span | None) -> Mistake:
    known = (*TEXTS, *KEYS)
    near = close(name, known)
    hint = f"did you mean `{near}`? " if near else ""
    if isinstance(value, dict):
        hint += "keys are at the top level, not in a table; "
    hint += f"there are {', '.join(known)}"
    return Mistake(f"there is no key `{shown(name)}`", span, hint)


def _of_number(name: str, value: object, span: Span | None) -> Iterator[Mistake]:
    key = KEYS[name]
    kind = "an integer" if key.whole else "a number"
    takes = f"{name} is {kind} from {numeral(key.least)} to {numeral(key.most)}: {key.about}"
    if isinstance(value, bool) or not isinstance(value, int if key.whole else int | float):
        yield Mistake(f"`{name}` is {value_shown(value)}, not {kind}", span, takes)
    elif not key.least <= value <= key.most:
        yield Mistake(f"`{name}` = {value_shown(value)} is out of range", span, takes)


def _of_arch(value: object, span: Span | None) -> Iterator[Mistake]:
    if isinstance(value, str) and value in SMS:
        return
    near = value.rstrip("af") if isinstance(value, str) else ""
    hint = f'write "{near}", which means it, too; ' if near in SMS else ""
    message = f"`arch` = {value_shown(value)} is not known"
    yield Mistake(message, span, f"{hint}there are {_archs()}")


def _of_name(value: object, span: Span | None) -> Iterator[Mistake]:
    if not (isinstance(value, str) and 0 < len(value.strip()) <= LONGEST and value.isprintable()):
        takes = f"name is a text of 1 to {LONGEST} printable characters"
        yield Mistake(f"`name` = {value_shown(value)} can't be printed", span, takes)


def _archs() -> str:
    return ", ".join(SMS)


def _place(name: str, source: Source) -> Span | None:
    """The key in the file: where a line begins with it, and what precedes the line is whole, so
    that the line is not a part of a text."""
    line = rf"^[ \t]*(?:\[+[ \t]*)?([\"']?{re.escape(name)}[\"']?)[ \t]*[=.\]]"
    for found in re.finditer(line, source.text, re.MULTILINE):
        try:
            tomllib.loads(source.text[: found.start()])
        except ValueError:
            continue
        return Span(found.start(1), found.end(1))
    return None


def _gpu(values: Mapping[str, object], stem: str) -> Gpu:
    """The checked values as a GPU."""
    texts = {name: value for name, value in values.items() if isinstance(value, str)}
    found = {name: value for name, value in values.items() if isinstance(value, int | float)}
    arch = texts["arch"]
    own = {
        field: int(found[name])
        for name, field in (
            ("tensor_f16", "halves"),
            ("tensor_i8", "integers"),
            ("tensor_f64", "double_tensor"),
            ("lanes_f64", "double_lanes"),
        )
        if name in found
    }
    return Gpu(
        texts.get("name", stem),
        arch,
        int(found["sms"]),
        found["clock"] * 1e6,
        found["memory"] * 1e9,
        found["l2"] * 1e9 if "l2" in found else None,
        int(found["cache"] * MIB),
        float(found["power"]),
        replace(SMS[arch], **own),
    )

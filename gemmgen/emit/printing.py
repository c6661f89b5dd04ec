"""The templates, compiled once for each user: their byte code is kept."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import jinja2
from jinja2.bccache import Bucket

from gemmgen.base import caches

_CODE = "code"


class _ByteCode(jinja2.BytecodeCache):
    """Byte code in the user's cache, which gives back only what was written."""

    def get_cache_key(self, name: str, filename: str | None = None) -> str:
        return name

    def load_bytecode(self, bucket: Bucket) -> None:
        kept = caches.read(self._name(bucket))
        if kept is not None:
            bucket.bytecode_from_string(kept[_CODE])

    def dump_bytecode(self, bucket: Bucket) -> None:
        caches.write(self._name(bucket), {_CODE: bucket.bytecode_to_string()})

    def _name(self, bucket: Bucket) -> str:
        """Of all that decides; ``checksum`` is that of the template's text."""
        printer = Path(__file__).read_bytes()  # the environment's options
        versions = f"{jinja2.__version__} {sys.version}"
        return f"template-{caches.key(versions, printer, bucket.key, bucket.checksum)}"


@cache
def environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        bytecode_cache=_ByteCode(),
        auto_reload=False,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )

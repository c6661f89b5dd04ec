"""All checks of C3 on machine code, for each architecture that the text is compiled for."""

from __future__ import annotations

import json
from collections.abc import Iterable

from gemmgen.base import caches
from gemmgen.base.errors import CannotCheck
from gemmgen.gpu import compiler, sass, sass_rules
from gemmgen.pipeline import Emitted
from gemmgen.proof import multiplies_code, tma_code, verdicts
from gemmgen.proof.code_findings import Findings

_NOTES = "notes"


def checked(emitted: Emitted, archs: Iterable[str]) -> tuple[Findings, str]:
    """The findings, and what was checked, or why nothing was: no disassembler is installed."""
    names = tuple(archs)
    try:
        name = f"machine-code-{_key(emitted, names)}"
        known = caches.read(name)
        if known is not None:
            return Findings(notes=tuple(json.loads(known[_NOTES]))), _done(names)
        found = tma_code.findings(emitted) + multiplies_code.findings(emitted)
        for arch in names:
            found += legality(emitted.text, arch)
    except CannotCheck as missing:
        return Findings(), f"the machine code was not checked: {missing}"
    if not found.errors:
        caches.write(name, {_NOTES: json.dumps(found.notes).encode()})
    return found, _done(names)


def legality(text: str, arch: str) -> Findings:
    """An error if an instruction of ``text``, compiled for ``arch``, is known to be illegal: the
    first of each function.  Raises ``CannotCheck``."""
    functions = sass.functions(compiler.compile_text(text, arch).cubin)
    found = ((name, next(sass_rules.violations(code), None)) for name, code in functions.items())
    return Findings(
        tuple(
            f"{arch}: {compiler.compiler().name} wrote an illegal instruction in {name}: "
            f"{first.text()}"
            for name, first in found
            if first is not None
        )
    )


def _key(emitted: Emitted, archs: tuple[str, ...]) -> str:
    about = (emitted.text, emitted.target, *archs, compiler.identity(), repr(sass.tool()))
    return caches.key(verdicts.checker(), *about)


def _done(archs: tuple[str, ...]) -> str:
    return f"its machine code has no pattern known to be illegal ({', '.join(archs)})"

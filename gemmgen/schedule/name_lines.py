"""Checks ``kernel``, a name that nothing else in the emitted text has, and ``target``, a known
architecture."""

from __future__ import annotations

import re

from gemmgen.base.errors import Refusal
from gemmgen.base.source import shown
from gemmgen.ir.identifiers import global_word
from gemmgen.ir.target import TARGETS
from gemmgen.schedule.gemm_line import GemmScope, check_name
from gemmgen.schedule.raw import Word
from gemmgen.schedule.reserved import kernel_names, taken


def check_kernel(word: Word, scope: GemmScope) -> str:
    """The kernel's name."""
    check_name(word, "kernel")
    why = global_word(word.text)
    names = taken(scope.gemm) if scope.sure else {}
    for name in kernel_names(word.text):
        why = why or names.get(name)
    if why:
        raise Refusal(
            f"`{shown(word.text)}` can't be a kernel's name: it is {why}",
            at=word.span,
            hint=f"any other name will do, such as `{word.text}_kernel`",
        )
    return word.text


def check_default_kernel(name: str, scope: GemmScope) -> None:
    """Refuses a tensor that has the default name of the kernel."""
    for access in (scope.gemm.c, scope.gemm.a, scope.gemm.b):
        if scope.sure and access.tensor in kernel_names(name):
            raise Refusal(
                f"the tensor {access.tensor} has the name of {kernel_names(name)[access.tensor]}",
                at=access.span,
                hint="rename the tensor, or name the kernel: add `kernel my_gemm`",
            )


def check_target(word: Word) -> str:
    """The architecture."""
    if word.text in TARGETS:
        return word.text
    known = ", ".join(TARGETS)
    near = "sm_" + re.sub(r"^(sm|compute|cc)?_?", "", word.text.lower())
    hint = f"did you mean {near}? " if near in TARGETS else ""
    raise Refusal(
        f"unknown target `{shown(word.text)}`", at=word.span, hint=f"{hint}the targets are {known}"
    )

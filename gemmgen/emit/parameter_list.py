"""The parameter lists of the kernel and of its launcher."""

from __future__ import annotations

from gemmgen.emit.ctypes import STORED
from gemmgen.emit.line_breaks import filled
from gemmgen.emit.printing import printed
from gemmgen.emit.views import fields_view
from gemmgen.ir.interface import Param


def parameter_rows(params: tuple[Param, ...], width: int, *, restrict: bool) -> list[list[str]]:
    """The parameters line by line: the extents, then what ``width`` columns of a kernel hold."""
    texts = {_text(param, restrict=True): _text(param, restrict=restrict) for param in params}
    extents = sum(param.kind == "extent" for param in params)
    first, others = list(texts)[:extents], list(texts)[extents:]
    return [[texts[text] for text in row] for row in (first, *filled(others, ", ", width))]


def _text(param: Param, *, restrict: bool) -> str:
    """A parameter, by the template of its kind.  Other blocks write to scratch memory while this
    one runs: that is never restricted."""
    view = {**fields_view(param), "type": STORED[param.dtype]}
    flags = {"constant": range(not param.written), "restrict": range(restrict)}
    return printed(f"parameters/{param.kind}.j2", {**view, **flags})

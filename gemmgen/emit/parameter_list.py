"""The parameter lists of the kernel and of its launcher."""

from __future__ import annotations

from gemmgen.emit.launcher_types import ElementTypes, element_type
from gemmgen.emit.line_breaks import filled
from gemmgen.emit.printing import printed
from gemmgen.emit.views import fields_view
from gemmgen.ir.param import Param
from gemmgen.ir.tensor_map import map_name


def parameter_rows(
    params: tuple[Param, ...], width: int, *, restrict: bool, types: ElementTypes = "bits"
) -> list[list[str]]:
    """The parameters line by line: the extents, then what ``width`` columns of a kernel hold."""
    mapped = {param.name for param in params if param.kind == "map"}

    def text(param: Param) -> str:
        """TMA writes to what has a map beside its address: that is not restricted."""
        return _text(param, restrict and map_name(param.name) not in mapped, types)

    texts = list(map(text, params))
    extents = sum(param.kind == "extent" for param in params)
    return [texts[:extents], *filled(texts[extents:], ", ", width)]


def _text(param: Param, restrict: bool, types: ElementTypes) -> str:
    """A parameter, by the template of its kind.  Other blocks write to scratch memory while this
    one runs: that is never restricted."""
    view = {**fields_view(param), "type": element_type(param, types)}
    flags = {"constant": range(not param.written), "restrict": range(restrict)}
    return printed(f"parameters/{param.kind}.j2", {**view, **flags})

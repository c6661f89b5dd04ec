"""Scopes of an emitted text: names that it declares twice, or uses and does not declare.

Whatever a template writes, a collision of names shows in the text itself: a declaration whose name
is already visible there is refused by a compiler, or hides what another statement means.  The
scanner reads the part of C++ that templates write; a test reads all texts and finds each name
that they use declared.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from gemmgen.base.record import record

_TOKEN = re.compile(
    r"""//[^\n]*|^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'"""
    r"""|(\.?\d(?:[eEpP][+-]|[\w.])*|[A-Za-z_]\w*|::|->|<<<|>>>|&&|\S)""",
    re.MULTILINE,
)
BEGINS = "// ---- kernel ----"
"""Above it are device functions, in whose bodies no name of a schedule occurs."""


def _words(text: str) -> frozenset[str]:
    return frozenset[str](text.split())


TYPES = _words("""
    auto bool char double float int long short signed unsigned void __half __nv_bfloat16 size_t
    uint2 uint4 float2 float4 double2 CUtensorMap cudaError_t cudaStream_t cudaLaunchConfig_t
    cudaLaunchAttribute cudaDriverEntryPointQueryResult cudaFuncAttributes cudaEvent_t cudaDataType
    cudaDeviceProp cudaDataType_t cublasHandle_t cublasLtHandle_t cublasLtMatmulDesc_t
    cublasLtMatrixLayout_t cublasComputeType_t cublasLtMatmulPreference_t
    cublasLtMatmulHeuristicResult_t gg_tensor_map
    """)
_QUALIFIERS = _words("const volatile __restrict__ * & && static thread_local constexpr extern")
_ATTRIBUTES = _words(
    "alignas __align__ __launch_bounds__ __cluster_dims__ __maxnreg__ static_assert"
)
KEYWORDS = _words("""
    alignas alignof asm auto bool break case class const constexpr continue default delete do else
    extern false for goto if inline namespace new nullptr operator reinterpret_cast return sizeof
    static static_assert static_cast struct switch template this thread_local true typedef
    typename using volatile while __restrict__ __device__ __global__ __forceinline__ __shared__
    __grid_constant__
    """)
_FOLLOW = _words("= ; , ) [ ( { : >")
_STATEMENTS = ("for", "function", "template")
_CAPTURE = _words("& = [")


_What = Literal["device function", "namespace", "type", "other"]

_AGAIN = ("device function", "namespace")
"""What may be declared again: overloads, and a namespace that goes on."""


@record
class ScopeNames:
    """``repeated``: names declared although they are visible, in the order of the text; ``loose``:
    names that are used and that the text does not declare; ``declared``: the names at file scope,
    and what each is."""

    repeated: tuple[str, ...]
    loose: frozenset[str]
    declared: tuple[tuple[str, _What], ...]


def names_of(text: str) -> ScopeNames:
    """The names of an emitted file."""
    above, marker, below = text.partition(BEGINS)
    if not marker:
        return _Scanner({}).scan(text)
    outside = _device_functions(above)
    found = _Scanner(dict(outside.declared)).scan(below)
    repeated = (*outside.repeated, *found.repeated)
    return ScopeNames(repeated, outside.loose | found.loose, found.declared)


@lru_cache(256)
def _device_functions(text: str) -> ScopeNames:
    return _Scanner({}).scan(text)


class _Scope:
    """``kind``: ``file``, ``struct``, ``block``, ``lambda`` (its block), ``list`` (of
    initializers); ``for``, ``function`` and ``template`` end with the statement they begin, at the
    ``depth`` of open parentheses where they began."""

    def __init__(self, kind: str, depth: int, names: dict[str, _What] | None = None):
        self.kind, self.depth = kind, depth
        self.names = {} if names is None else names


class _Scanner:
    """Reads tokens one after another.  ``typed``: the next name may be one that is declared;
    ``heading``: the name of a struct follows, or its body."""

    def __init__(self, outside: dict[str, _What]):
        self.scopes = [_Scope("file", 0, outside)]
        self.repeated: list[str] = []
        self.loose: set[str] = set()
        self.depth = self.angles = 0
        self.typed = self.device = self.typedef = self.heading = False
        self.listing: tuple[int, int] | None = None
        """Parentheses and scopes where a declaration may go on after a comma."""
        self.kept: list[tuple[int, bool]] = []
        """Parentheses of attributes, and ``typed`` before them."""

    def scan(self, text: str) -> ScopeNames:
        tokens: list[str] = [found for found in _TOKEN.findall(text) if found]
        before = ["", ""]
        for token, following in pairwise((*tokens, "")):
            if token[0].isdigit() or (token[0] == "." and len(token) > 1):
                self.typed = False
            elif token[0].isalpha() or token[0] == "_":
                self._name(token, before, following)
            else:
                self._mark(token, before, following)
            before = [token, before[0]]
        outside = tuple(self.scopes[0].names.items())
        return ScopeNames(tuple(self.repeated), frozenset(self.loose), outside)

    def _name(self, name: str, before: list[str], following: str) -> None:
        last = before[0]
        if last in (".", "->"):
            self.typed = False
        elif last == "::":
            self.typed = following != "("
        elif last == "namespace" and before[1] != "using":
            self._add(name, "namespace")
        elif self._names_type(name, last, following):
            struct_template = self.heading and self.scopes[-1].kind == "template"
            self._add(name, "type", 2 if struct_template else 1)
            self.typed = False
        elif self._is_type(name) and not (self.typed and following in _FOLLOW and self._own(name)):
            self.typed = following != "::"
            if self.scopes[-1].kind == "struct" and following == "(":
                self._open_function()  # a constructor
        elif name in KEYWORDS or name in _ATTRIBUTES:
            self._keyword(name)
        elif self.typed and following in _FOLLOW and not self.angles:
            self._declare(name, following)
        else:
            if self._own(name) is None:
                self.loose.add(name)
            self.typed = False

    def _is_type(self, name: str) -> bool:
        return name in TYPES or self._own(name) == "type"

    def _own(self, name: str) -> _What | None:
        """What the text has declared a name as, in the innermost scope."""
        for scope in reversed(self.scopes):
            if name in scope.names:
                return scope.names[name]
        return None

    def _names_type(self, name: str, last: str, following: str) -> bool:
        if last in ("typename", "using"):
            return name not in KEYWORDS
        return self.heading and following == "{"

    def _keyword(self, name: str) -> None:
        if name == "template":
            self.scopes.append(_Scope("template", self.depth))
        self.typedef = self.typedef or name == "typedef"
        self.heading = self.heading or name == "struct"
        self.device = self.device or name == "__device__"
        if name not in _QUALIFIERS and name not in _ATTRIBUTES:
            self.typed = False

    def _add(self, name: str, what: _What, outward: int = 1) -> None:
        """Declare a name in a scope, counted from the innermost."""
        for scope in self.scopes:
            if name in scope.names and not (scope.names[name] == what in _AGAIN):
                self.repeated.append(name)
        self.scopes[-outward].names[name] = what

    def _declare(self, name: str, following: str) -> None:
        kind = self.scopes[-1].kind
        function = following == "(" and kind in ("file", "struct", "template")
        what: _What = "type" if self.typedef else "other"
        if function and self.device:
            what = "device function"
        # What is in the scope of a template's parameters ends with it, and its name does not.
        self._add(name, what, 2 if function and kind == "template" else 1)
        self.typed = False
        if function:
            self._open_function()
        elif kind not in ("function", "template"):
            self.listing = (self.depth, len(self.scopes))

    def _open_function(self) -> None:
        self.scopes.append(_Scope("function", self.depth))
        self.device = self.typed = False

    def _mark(self, token: str, before: list[str], following: str) -> None:
        if self.angles or (token == "<" and self.typed):
            self.angles += (token == "<") - (token == ">")
            self.typed = not self.angles
        elif token == "(":
            self._parenthesis(before)
        elif token == ")":
            self.depth -= 1
            attribute = self.kept and self.kept[-1][0] == self.depth
            self.typed = bool(attribute and self.kept.pop()[1])
        elif token == "{":
            self._brace(before)
        elif token == "}":
            self._close(following)
        elif token == ";":
            self.typed = self.typedef = self.device = self.heading = False
            self.listing = None
            self._end_statement(following)
        elif token == ",":
            self.typed = self.listing == (self.depth, len(self.scopes))
        elif token not in _QUALIFIERS:
            self.typed = False

    def _parenthesis(self, before: list[str]) -> None:
        if before[0] in _ATTRIBUTES:
            self.kept.append((self.depth, self.typed))
        if before[0] == "for":
            self.scopes.append(_Scope("for", self.depth))
        elif before[0] == "]" and before[1] in _CAPTURE:
            self.scopes.append(_Scope("function", self.depth))
        self.typed = self.typed and self._is_type(before[0])  # `float (&sums)[rows]`
        self.depth += 1

    def _brace(self, before: list[str]) -> None:
        last, inner = before[0], self.scopes[-1].kind
        kind, names = "block", dict[str, _What]()
        if self.heading:
            kind = "struct"
        elif before[1] == "namespace":
            kind = "file"
            if last.endswith("_detail"):  # a kernel's, which is open wherever its names are used
                names = self.scopes[0].names
        elif (last == "]" and before[1] in _CAPTURE) or (
            last == ")" and inner == "function" and self.depth
        ):
            kind = "lambda"
        elif last not in (")", "{", "}", ";", "else", "const") or inner == "list":
            kind = "list"
        self.scopes.append(_Scope(kind, self.depth, names))
        self.typed = self.heading = False

    def _close(self, following: str) -> None:
        self.typed = False
        if len(self.scopes) == 1:
            return  # of the namespace that begins above the kernel
        closed = self.scopes.pop()
        if closed.kind == "lambda" and self.scopes[-1].kind == "function":
            self.scopes.pop()
        elif closed.kind not in ("lambda", "list"):
            self.device = False
            self._end_statement(following)

    def _end_statement(self, following: str) -> None:
        """Ends the scopes that end with a statement."""
        while (
            following != "else"
            and self.scopes[-1].kind in _STATEMENTS
            and self.scopes[-1].depth == self.depth
        ):
            self.scopes.pop()

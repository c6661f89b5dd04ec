"""Whatever a schedule calls its things, the text compiles or the schedule is refused.

g++ reads many texts in one go, each in a namespace, launchers included; its options make it refuse
a declaration that hides another one.  Words come from the emitted texts themselves.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from gemmgen.base.source import Source
from gemmgen.ir.identifiers import EMITTED, global_word, language_word
from gemmgen.ir.parameters import CONSTANTS
from gemmgen.pipeline import compile_source
from gemmgen.schedule.reserved import STEMS, VARIABLES, kernel_names

from .compiling import refused_by_compiler
from .together import groups, places, tried
from .words import TEMPLATES, USUAL, hostile, identifiers, known_to_c, schedule_text

WORST = (
    "next",
    "shared",
    "frag",
    "t",
    "e",
    "a",
    "size_t",
    "elem",
    "value_2",
    "Aq_shared",
    "vq_frag",
)
"""Words that once broke a text, and their like."""


@pytest.mark.proof
@pytest.mark.skipif(not shutil.which("g++"), reason="g++ reads the texts")
def test_the_worst_words(tmp_path: Path) -> None:
    found = {
        name: kernel
        for template, words in (("staged", WORST[:6]), ("lanes", WORST[6:]))
        for name, kernel in tried(
            template, [{place: word} for place in places(template) for word in words]
        ).items()
    }
    assert len(found) > 30
    assert refused_by_compiler(found, tmp_path) == []


@pytest.mark.skipif(not shutil.which("g++"), reason="g++ reads the texts")
def test_the_compiler_sees_a_name_that_is_taken(tmp_path: Path) -> None:
    """The check can fail: a text with a parameter called as the launcher's variable."""
    kernel = compile_source(Source(schedule_text("lanes")))
    broken = replace(kernel, text=re.sub(r"\bsq\b", "blocks", kernel.text))
    assert len(refused_by_compiler({"right": kernel, "broken": broken}, tmp_path)) == 1


TURNS = 3


@pytest.mark.proof
@pytest.mark.skipif(not shutil.which("g++"), reason="g++ reads the texts")
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("template", TEMPLATES)
def test_all_words(template: str, tmp_path: Path) -> None:
    """Each word at every third place, the next word at the next ones: so all words are tried in
    each template, and each place has a third of them.  ``python -m tests.hostile.names`` changes
    names at random, as many as are asked for."""
    every = {place: hostile(template, place) for place in places(template)}
    words = sorted({word for some in every.values() for word in some})
    turn = {word: number % TURNS for number, word in enumerate(words)}
    among = {
        place: [word for word in some if (turn[word] + at) % TURNS == 0]
        for at, (place, some) in enumerate(every.items())
    }
    assert {word for some in among.values() for word in some} == {*words}
    found = tried(template, groups(among))
    assert sum(name.count("': '") for name in found) > 180
    assert refused_by_compiler(found, tmp_path) == []


@pytest.mark.proof
@pytest.mark.skipif(not shutil.which("g++"), reason="g++ reads the texts")
def test_words_that_share_a_schedule_hide_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Where the compiler refuses none of its own words, each that breaks a text is found."""
    words = ["acc", "along", "blocks", "error", "lane", "out", "sums", "tid", "warp"]
    monkeypatch.setattr("gemmgen.ir.identifiers.EMITTED", EMITTED - set(words))
    language_word.cache_clear()
    request.addfinalizer(language_word.cache_clear)
    monkeypatch.setattr("gemmgen.pipeline.check_identifiers", lambda *_: None)
    every = groups({place: words for place in places("lanes")})
    alone = tried("lanes", [{place: word} for group in every for place, word in group.items()])
    bad = refused_by_compiler(alone, tmp_path)
    message = " ".join(refused_by_compiler(tried("lanes", every), tmp_path))
    broken = [pair for name in bad for pair in re.findall(r"'\w+': '\w+'", name)]
    assert len(broken) == len(bad) > 20
    assert [pair for pair in broken if pair not in message] == []


@pytest.mark.parametrize("template", TEMPLATES)
def test_every_identifier_follows_from_a_word_or_is_reserved(template: str) -> None:
    """The lists of reserved names are those of the texts."""
    text = compile_source(Source(schedule_text(template))).text
    own = set(USUAL.values())
    letters = {USUAL[place] for place in ("row", "col", "term", "batch")}
    tensors = {USUAL[place] for place in ("C", "A", "B", "vector", "matrix")}
    follow = own | {word.upper() for word in letters} | {f"size_{x}" for x in letters}
    follow |= {f"{first}_{x}" for first in VARIABLES for x in letters}
    follow |= {first + x.upper() for first in CONSTANTS for x in letters}
    follow |= {f"ld{t.lower()}" for t in tensors} | {t + stem for t in tensors for stem in STEMS}
    follow |= {
        f"{t}{middle}{x}"
        for t in tensors
        for middle in ("_", "_next_", "_row_", "_parts_")
        for x in letters
    }
    follow |= {f"stride_{t}_{x}" for t in tensors for x in letters}
    follow |= {f"load_{t}" for t in tensors}
    follow |= {*kernel_names(USUAL["kernel"]), "tile", "matrix_tiles", "x", "y", "e"}
    # Of the preprocessor, and local to a helper function, where no name of a schedule is visible.
    helpers, kernel = text.split("// ---- kernel ----", maxsplit=1)
    in_front = rf'extern "C" __global__ [^\n]*\n{USUAL["kernel"]}_split'
    helper = rf"^(__device__|template|{in_front}).*?^}}$"
    kernel = re.sub(helper, "", kernel, flags=re.DOTALL | re.MULTILINE)
    kept = {"ifndef", "endif", "pragma", "unroll", "LL", "f"} | identifiers(helpers)
    loose = {
        name
        for name in identifiers(kernel) - follow - kept
        if not language_word(name) and not re.fullmatch(r"\d\w*", name)
    }
    assert loose == set()


@pytest.mark.proof
@pytest.mark.skipif(not shutil.which("nvcc"), reason="nvcc knows CUDA's names")
def test_no_kernel_has_a_name_that_nvcc_knows(tmp_path: Path) -> None:
    """Every identifier in the headers of C and CUDA, as a kernel's name, is refused or compiles."""
    headers = "".join(
        f"#include <{name}.h>\n" for name in ("stdio", "stdlib", "string", "math", "time", "ctype")
    )
    base = tmp_path / "headers.cu"
    base.write_text(headers, encoding="utf-8")
    nvcc = ("nvcc", "-arch=sm_80")
    read = subprocess.run([*nvcc, "-E", str(base)], capture_output=True, text=True, check=True)
    names = {*re.findall(r"\b[A-Za-z]\w*", re.sub(r'"[^"\n]*"', "", read.stdout)), *known_to_c()}
    free = sorted(name for name in names if len(name) < 64 and not global_word(name))
    lines = (
        f'extern "C" __global__ void {name}(short *, const char *, char) {{}}' for name in free
    )
    every = tmp_path / "every.cu"
    every.write_text(headers + "\n".join(lines), encoding="utf-8")
    for way in (["-ptx"], ["--cuda"]):
        done = subprocess.run(
            [*nvcc, *way, "-o", str(tmp_path / "out"), str(every)], capture_output=True, text=True
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[:2000]
    assert len(free) > 500

"""What tests share: this folder is on their path (``from pipeline.running import check``)."""

from __future__ import annotations

import fnmatch
import gc
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import patched
import pytest
import skips
from budget import Budget

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import Scheduling

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # each core has a process: threads just wait

IDLE = pytest.StashKey[list[str]]()
GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write the texts of tests/golden again"
    )
    parser.addoption(
        "--proof", action="store_true", help="run the tests marked proof as well: all there are"
    )


gc.disable()  # until all is collected


def pytest_collection_finish() -> None:
    """The thousands of tests stay: looking at them with every collection takes a tenth of a run.

    What a test makes has few cycles, and is mostly gone before a collection is due.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


def is_proof(config: pytest.Config) -> bool:
    """Is everything asked for?"""
    return bool(config.getoption("--proof")) or "proof" in config.getoption("-m")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Marks what ``by_default`` leaves to the proof and, where that is run, what does more in it.

    The mark is that of a test that repeats one mechanism over many parameters: by default one for
    each mechanism.  ``but``: all except these.
    """
    if is_proof(item.config) and does_more(item):
        item.add_marker("proof")
    kept = item.get_closest_marker("by_default")
    if kept is not None and not is_kept(item, kept):
        item.add_marker("proof")


def is_kept(item: pytest.Item, mark: pytest.Mark) -> bool:
    """Whether the default suite has a test that ``mark`` is on."""
    if "but" in mark.kwargs:
        return not any(matches(item, pattern) for pattern in mark.kwargs["but"])
    return any(matches(item, pattern) for pattern in mark.args)


def matches(item: pytest.Item, pattern: str) -> bool:
    """Whether the parameters of a test are of this pattern, one of ``fnmatch``."""
    return fnmatch.fnmatchcase(item.name.partition("[")[2].removesuffix("]"), pattern)


def does_more(item: pytest.Item) -> bool:
    """Does a test of the default suite do with less there?"""
    is_property = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    return is_property or "proof" in getattr(item, "fixturenames", ())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without ``--proof``, or a ``-m`` that names the mark, tests marked proof are deselected."""
    config.stash[IDLE] = idle_rules(config, items)
    if is_proof(config):
        return
    left_out = [item for item in items if item.get_closest_marker("proof")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("proof")]


def idle_rules(config: pytest.Config, items: list[pytest.Item]) -> list[str]:
    """The patterns of ``by_default`` that no test of a whole collection has."""
    if config.args != config.getini("testpaths") or config.getoption("-k"):
        return []
    met: dict[str, bool] = {}
    for item in items:
        kept = item.get_closest_marker("by_default")
        for pattern in (*kept.args, *kept.kwargs.get("but", ())) if kept else ():
            rule = f"{item.nodeid.partition('[')[0]}[{pattern}]"
            met[rule] = met.get(rule, False) or matches(item, pattern)
    return [rule for rule, found in met.items() if not found]


@pytest.fixture
def idle(pytestconfig: pytest.Config) -> list[str]:
    """What marks ``by_default`` name and is not there; nothing where not all was collected."""
    return pytestconfig.stash[IDLE]


def pytest_configure(config: pytest.Config) -> None:
    """How many examples a property is tried on, and where this run keeps what it makes.

    Fresh processes find what a user's would: compiled modules, and gemmgen's own caches.  Both are
    kept next to pytest's cache, so that nothing is written into the tree or the home.
    """
    if not config.getoption("numprocesses", None):  # else its workers run the tests
        _try_examples(None if is_proof(config) else 15)
    config.pluginmanager.register(Budget(), "budget")
    config.pluginmanager.register(skips, "skips")
    patched.forget_with_each_patch()
    if hasattr(config, "workerinput") or getattr(config, "cache", None) is None:
        return  # a worker has the environment of the process that began it
    home = config.cache.mkdir("home")
    os.environ["XDG_CACHE_HOME"] = str(home)
    for results in (home / "gemmgen").glob("results.*"):  # no run depends on an earlier one
        results.unlink()
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
        os.environ["PYTHONPYCACHEPREFIX"] = str(config.cache.mkdir("bytecode"))


def _try_examples(count: int | None) -> None:
    import hypothesis

    examples = {} if count is None else {"max_examples": count}
    hypothesis.settings.register_profile("here", deadline=None, **examples)
    hypothesis.settings.load_profile("here")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling | None:
    """With ``-n``: neighbors share a process, and so what it compiled; an idle one takes of
    another's rest."""
    if config.getoption("dist") != "load":
        return None
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


@pytest.fixture
def golden(pytestconfig: pytest.Config) -> Callable[[str, str], str]:
    """``golden("tiled.cu", text)``: the file's text, which ``--update-golden`` first writes."""

    def read(name: str, text: str) -> str:
        path = GOLDEN / name
        if pytestconfig.getoption("--update-golden"):
            draft = path.with_suffix(f".{os.getpid()}")
            draft.write_text(text, encoding="utf-8", newline="\n")
            draft.replace(path)
        assert path.exists(), f"no {path.name}: pytest tests/golden --update-golden writes it"
        return path.read_bytes().decode()

    return read


@pytest.fixture
def proof(pytestconfig: pytest.Config) -> bool:
    """Is everything asked for?  Else a test may do with less."""
    return is_proof(pytestconfig)


@pytest.fixture(autouse=True)
def no_verdict_under_a_patch(request: pytest.FixtureRequest) -> None:
    """A checker that a test has changed neither uses nor leaves what was proved before."""
    if "monkeypatch" in request.fixturenames:
        from gemmgen.proof import verdicts

        patch = request.getfixturevalue("monkeypatch")
        patch.setattr(verdicts, "complaint_of", lambda prove, *_: prove())
        patch.setattr(verdicts, "keep", lambda *_: None)


@pytest.fixture
def estimated(proof: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """By default registers are estimated, and no machine code is read: a second less."""
    if proof:
        return
    from gemmgen.analyze import resources
    from gemmgen.base.errors import CannotCheck

    def refuse(*_: object) -> None:
        raise CannotCheck("nothing is compiled here")

    monkeypatch.setattr(resources, "compile_text", refuse)

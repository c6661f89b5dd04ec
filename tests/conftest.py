"""What tests share: this folder is on their path (``from pipeline.running import check``)."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import bytecode
import patched
import pytest
import skips
from budget import Budget
from levels import give_levels, idle_rules, is_exhaustive, is_left_out, is_proof
from messages import Messages

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
        "--proof", action="store_true", help="run the tests marked proof as well, as CI does"
    )
    parser.addoption("--exhaustive", action="store_true", help="run all tests there are")


gc.disable()  # until all is collected


def pytest_collection_finish() -> None:
    """The thousands of tests stay: looking at them with every collection takes a tenth of a run.

    What a test makes has few cycles, and is mostly gone before a collection is due.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Each test gets its level (``levels``); those of a level that is not asked for are
    deselected."""
    give_levels(items)
    config.stash[IDLE] = idle_rules(config, items)
    left_out = [item for item in items if is_left_out(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not is_left_out(item)]


@pytest.fixture
def idle(pytestconfig: pytest.Config) -> list[str]:
    """What marks of levels name and is not there; nothing where not all was collected."""
    return pytestconfig.stash[IDLE]


def pytest_configure(config: pytest.Config) -> None:
    """How many examples a property is tried on, and where this run keeps what it makes.

    Fresh processes find what a user's would: compiled modules, and gemmgen's own caches.  Both are
    kept next to pytest's cache, so that nothing is written into the tree or the home.
    """
    if not config.getoption("numprocesses", None):  # else its workers run the tests
        _try_examples(None if is_proof(config) else 10)
    config.pluginmanager.register(Budget(), "budget")
    config.pluginmanager.register(skips, "skips")
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(Messages(), "messages")
        bytecode.compile_share(config, config.workerinput["workerid"])
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
    """Is the proof asked for?  Else a test may do with less."""
    return is_proof(pytestconfig)


@pytest.fixture
def exhaustive(pytestconfig: pytest.Config) -> bool:
    """Is everything asked for?  Else a test may do with less."""
    return is_exhaustive(pytestconfig)


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

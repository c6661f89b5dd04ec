"""A proof kept in a file, with its text's hash, its solver and its outcomes."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any, cast

from gemmgen import __version__
from gemmgen.base.errors import UsageError
from gemmgen.base.source import shown
from gemmgen.pipeline import Emitted
from gemmgen.prove.goals import FACTS
from gemmgen.prove.proof_report import ProofReport, as_json

FORMAT = 1


def certificate(emitted: Emitted, report: ProofReport) -> str:
    """The certificate of an emitted text, as JSON."""
    found: dict[str, Any] = {
        "format": FORMAT,
        "gemmgen": __version__,
        "kernel": emitted.name,
        "target": emitted.target,
        "text": digest(emitted),
        **as_json(report),
    }
    return json.dumps(found, indent=2) + "\n"


def digest(emitted: Emitted) -> str:
    """``sha256:...`` of the emitted text."""
    return f"sha256:{sha256(emitted.text.encode()).hexdigest()}"


def disagreement(emitted: Emitted, text: str, name: str) -> str:
    """Why a certificate does not vouch for an emitted text; empty if it does.

    Raises ``UsageError`` for what is not a certificate.
    """
    found = _read(text, name)
    if found.get("text") != digest(emitted):
        kernel = shown(str(found.get("kernel")))
        return f"{name} is the proof of another text (kernel {kernel}): run gemmgen prove again"
    facts = cast("list[dict[str, Any]]", found["facts"])
    status = {str(one.get("fact")): str(one.get("status")) for one in facts}
    missing = [fact for fact in FACTS if fact not in status]
    if missing:
        return f"{name} says nothing of {', '.join(missing)}"
    open_ = [f"{fact} {own}" for fact, own in status.items() if own != "proved"]
    if open_ or found.get("status") != "proved":
        return f"{name} is no proof: {', '.join(open_) or found.get('status')}"
    return ""


def _read(text: str, name: str) -> dict[str, Any]:
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise UsageError(f"{name} is not JSON, so not a file that gemmgen prove -o wrote")
    known = cast("dict[str, Any]", found)
    facts = known.get("facts")
    if known.get("format") != FORMAT or not isinstance(facts, list):
        raise UsageError(
            f"{name} is not a proof of format {FORMAT}: write it with gemmgen prove -o"
        )
    if not all(isinstance(one, dict) for one in cast("list[object]", facts)):
        raise UsageError(
            f"{name} is not a proof of format {FORMAT}: write it with gemmgen prove -o"
        )
    return known

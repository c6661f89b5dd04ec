"""The report of a campaign as text, as JSON, and as schedule files."""

from __future__ import annotations

import json
import re
from pathlib import Path

from gemmgen.base.source import counted
from gemmgen.fuzz.campaign import Found, LostTrial, Tally
from gemmgen.fuzz.factors import EVERY_PAIR, FACTORS
from gemmgen.fuzz.trial import Failure

_WIDTH = 96


def summary(tally: Tally, seed: int) -> str:
    """A few lines: the count, what was covered, and each failure with its replay."""
    seen = len(EVERY_PAIR) - len(tally.unseen)
    lines = [
        f"seed {seed}: {tally.schedules} schedules, {tally.runs} runs of their texts, "
        f"{tally.seconds:.0f} s: {counted(len(tally.found), 'failure')}",
        f"pairs of {len(FACTORS)} factors: {seen:,} of {len(EVERY_PAIR):,} seen, legal or not",
        f"refused: {tally.refused.total()} ({tally.share_refused:.1%})",
    ]
    if tally.lost:
        lines.append(f"lost on workers, not proved: {len(tally.lost)}")
        lines += [lost_line(one) for one in tally.lost]
    for found in tally.found:
        lines += ["", *failure_lines(found)]
    return "\n".join(lines) + "\n"


def lost_line(lost: LostTrial) -> str:
    """The line that repeats a lost trial on this machine, with what became of it."""
    return f"gemmgen fuzz --replay {lost.replay}   # lost: {lost.reason}"


def coverage(tally: Tally) -> str:
    """The pairs that were not seen, a line each; some of them are illegal."""
    lines = [f"{a}={x} with {b}={y}" for (a, x), (b, y) in sorted(tally.unseen)]
    return "not seen: " + "\nnot seen: ".join(lines) + "\n"


def as_json(tally: Tally, seed: int) -> str:
    """The same for scripts."""
    found = {
        "seed": seed,
        "schedules": tally.schedules,
        "runs": tally.runs,
        "seconds": round(tally.seconds, 3),
        "pairs": {
            "all": len(EVERY_PAIR),
            "unseen": [[a, b, x, y] for (a, x), (b, y) in sorted(tally.unseen)],
        },
        "refused": dict(tally.refused.most_common()),
        "lost": [{"replay": one.replay, "reason": one.reason} for one in tally.lost],
        "failures": [
            {
                "replay": f.trial.replay,
                "layer": f.failure.layer,
                "kind": f.failure.kind,
                "blame": f.failure.blame,
                "detail": f.failure.detail,
                "call": f.failure.case.text() if f.failure.case else None,
                "schedule": f.trial.text,
                "small": f.small.text if f.small else None,
            }
            for f in tally.found
        ],
    }
    return json.dumps(found, indent=2) + "\n"


def saved(tally: Tally, folder: Path) -> tuple[Path, ...]:
    """Writes each shrunk schedule into ``folder``; returns the files."""
    paths: list[Path] = []
    for found in tally.found:
        if found.small is not None:
            path = folder / f"{_file_name(found)}.sched"
            path.write_text(as_schedule(found), encoding="utf-8", newline="\n")
            paths.append(path)
    return tuple(paths)


def as_schedule(found: Found) -> str:
    """The smallest schedule, with the failure as its comment."""
    assert found.small is not None
    failure = found.small.failure
    comment = [_headline(failure), *_wrapped(failure.detail)]
    if failure.case:
        comment.append(f"at {failure.case.text()}")
    comment.append(f"first seen by gemmgen fuzz --replay {found.trial.replay}")
    return "".join(f"# {line}\n" for line in comment) + "\n" + found.small.text


def _file_name(found: Found) -> str:
    kind = re.sub(r"\W+", "-", f"{found.failure.layer}-{found.failure.kind}").strip("-").lower()
    return f"{kind}-{found.trial.seed}-{found.trial.index}"


def failure_lines(found: Found) -> list[str]:
    """A failure's lines: its replay, the failure, the smallest schedule with the same failure."""
    lines = [f"gemmgen fuzz --replay {found.trial.replay}   # {_headline(found.failure)}"]
    lines += [f"  {line}" for line in _wrapped(found.failure.detail)]
    if found.failure.case:
        lines.append(f"  at {found.failure.case.text()}")
    if found.small:
        lines.append(f"  the smallest schedule with the same failure ({found.small.tried} tried):")
        lines += [f"    {line}" for line in found.small.text.splitlines()]
        if found.small.failure.case:
            lines.append(f"  at {found.small.failure.case.text()}")
    return lines


def _headline(failure: Failure) -> str:
    blame = f", after {failure.blame}" if failure.blame else ""
    return f"{failure.layer} {failure.kind}{blame}"


def _wrapped(text: str) -> list[str]:
    """The first lines of a message, each truncated if it is too long."""
    return [line[:_WIDTH] for line in text.splitlines()[:6]]

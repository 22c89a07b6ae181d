"""What other processes do to what governs calls: they are killed at its writes, or all want the same at one time.

python -m support.governance_programs crash <folder> <url>    a process for each deed and side, killed there
python -m support.governance_programs race <folder> <url>     PROCESSES processes, each of which tells what it got

The url is that of a database, or `-` for a file in the folder.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from verbc.support import store as store_module
from verbc.support.approvals import ApprovalError, sweep
from verbc.support.backend import Evidence
from verbc.support.permits import Permit, refuse
from verbc.support.refusal import Refusal
from verbc.support.rulings import Ruling

from .forks import forked, joined, tell
from .governance import Kept, a_plan, policy_of, rows, ruling_of

PROCESSES = 4
ROUNDS = 8
CALLS = 7  # that the budget of the race allows
COST = 100
USED = 30
SIDES: Final = ("after", "before")


def asking(subject: str, identifier: str = "1") -> Ruling:
    """A call that has to be approved, under a budget."""
    budget = {"calls": 9, "bytes": 1000, "per": 3600.0}
    plan = a_plan("item.write", identifier, subject=subject, correlation=f"{subject} {identifier}", cost=COST)
    return ruling_of(plan, policy_of({subject: rows(ask=["write item:*"], budget=budget)}))


def _pending(kept: Kept, subject: str) -> dict[str, Any]:
    return kept.pending(asking(subject))


def _approved(kept: Kept, subject: str) -> None:
    kept.decide(_pending(kept, subject))


def _running(kept: Kept, subject: str) -> Permit:
    _approved(kept, subject)
    return kept.begun(asking(subject))


def _refused(kept: Kept, subject: str) -> None:
    ruling = asking(subject)
    kept.write(lambda connection: refuse(connection, ruling, Refusal("not_found", "No."), kept.now), "deed")


def _swept(kept: Kept, _subject: str) -> None:
    kept.later(minutes=15)
    kept.write(lambda connection: sweep(connection, kept.now), "deed")


# Each is prepared, and then done under the name of its one write. The sweep comes first, as it is about all there is.
DEEDS: Final[Mapping[str, tuple[str, Callable[[Kept, str], Any], Callable[[Kept, str, Any], object]]]] = {
    "sweep": ("deed", _pending, lambda kept, subject, _: _swept(kept, subject)),
    "ask": ("begin", lambda *_: None, lambda kept, subject, _: kept.begin(asking(subject))),
    "approve": ("decide", _pending, lambda kept, _, approval: kept.decide(approval)),
    "reject": ("decide", _pending, lambda kept, _, approval: kept.decide(approval, approved=False)),
    "use": ("begin", _approved, lambda kept, subject, _: kept.begin(asking(subject))),
    "end": ("end", _running, lambda kept, _, permit: kept.end(permit, Evidence(response_bytes=USED, status="ok"))),
    "give back": ("end", _running, lambda kept, _, permit: kept.end(permit, Evidence(contacted=False))),
    "refuse": ("deed", lambda *_: None, lambda kept, subject, _: _refused(kept, subject)),
}


def crash(folder: Path, url: str | None) -> None:
    """Tell how the process of each deed and side has ended."""
    tell(
        {f"{deed} {side}": joined(forked(partial(_until, deed, side, folder, url))) for deed in DEEDS for side in SIDES}
    )


def race(folder: Path, url: str | None) -> None:
    """Let the processes start at the same moment, and tell what each of them got, or how it ended."""
    first = Kept(folder, url)
    approved = [_decided_id(first, number) for number in range(ROUNDS)]
    waiting = [first.pending(asking("joe", f"waiting {number}"))["id"] for number in range(ROUNDS)]
    first.store.close()
    starting = os.pipe()
    children = [forked(partial(_take_part, starting, number, waiting, folder, url)) for number in range(PROCESSES)]
    os.close(starting[1])
    ends = [joined(child) for child in children]
    got = [json.loads((folder / f"{number}.json").read_text()) for number in range(PROCESSES)]
    tell({"ends": ends, "approved": approved, "waiting": waiting, "got": got})


def _decided_id(kept: Kept, number: int) -> str:
    """The id of an approval that is given for the call of a round."""
    approval = kept.pending(asking("ann", f"approved {number}"))
    kept.decide(approval)
    return str(approval["id"])


def _until(deed: str, side: str, folder: Path, url: str | None) -> None:
    subject = f"{deed} {side}"
    kept = Kept(folder, url)
    name, prepare, act = DEEDS[deed]
    prepared = prepare(kept, subject)
    store_module.fault = lambda reached: os.kill(os.getpid(), signal.SIGKILL) if reached == f"{side} {name}" else None
    act(kept, subject, prepared)


def _take_part(starting: tuple[int, int], number: int, waiting: list[str], folder: Path, url: str | None) -> None:
    kept = Kept(folder, url)
    kept.read(lambda _connection: None)
    os.close(starting[1])
    os.read(starting[0], 1)  # until nobody can write to it any more
    got: dict[str, Any] = {"used": [], "asked": [], "decided": [], "budget": 0}
    for turn, identifier in enumerate(waiting):
        used = kept.begin(asking("ann", f"approved {turn}"))
        if isinstance(used, Permit):
            got["used"].append(used.approval_id)
        got["asked"].append(kept.pending(asking("bob", f"asked {turn}"))["id"])
        with suppress(ApprovalError):
            kept.decide({"id": identifier}, approved=number % 2 == 0, by=f"operator:{number}")
            got["decided"].append(identifier)
        got["budget"] += isinstance(kept.begin(_limited(f"{number} {turn}")), Permit)
    kept.store.close()
    (folder / f"{number}.json").write_text(json.dumps(got))


def _limited(identifier: str) -> Ruling:
    budget = {"calls": CALLS, "bytes": None, "per": 3600.0}
    plan = a_plan("item.read", identifier, subject="eve", correlation=f"eve {identifier}")
    return ruling_of(plan, policy_of({"eve": rows(["read item:*"], budget=budget)}))


if __name__ == "__main__":
    {"crash": crash, "race": race}[sys.argv[1]](Path(sys.argv[2]), None if sys.argv[3] == "-" else sys.argv[3])

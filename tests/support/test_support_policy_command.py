"""The command `policy`: a key is shown once and known by its digest, and a policy file is checked as servers read it."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from verbc.support.operator_command import main
from verbc.support.registry import Registry

from .samples import DATA

RUN = """
import json, sys
from verbc.support.operator_command import main
from verbc.support.registry import from_data

sys.exit(main(sys.argv[2:], from_data(json.loads(sys.argv[1]))))
"""


def told(capsys: pytest.CaptureFixture[str], registry: Registry, *words: str, code: int = 0) -> tuple[str, str]:
    assert main(["policy", *words], registry) == code
    out, err = capsys.readouterr()
    return out, err


def test_a_key_is_printed_once_and_its_digest_beside_it(registry: Registry, capsys: pytest.CaptureFixture[str]) -> None:
    out, err = told(capsys, registry, "key")
    digest = hashlib.sha256(out.removesuffix("\n").encode()).hexdigest()
    sentence, line = err.splitlines()
    assert sentence == "sample-mcp: The key is shown this one time; the policy file knows it by this line:"
    assert line == f'operator_keys: ["{digest}"]'
    assert told(capsys, registry, "key")[0] != out


@pytest.mark.parametrize(
    ("subjects", "counted"), [({}, "0 subjects"), ({"ada": {}}, "1 subject"), ({"ada": {}, "bob": {}}, "2 subjects")]
)
def test_a_file_that_can_be_used_is_said_to(
    subjects: dict[str, object], counted: str, registry: Registry, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tmp_path.chmod(0o700)
    path = tmp_path / "policy.json"
    path.write_text(json.dumps({"subjects": subjects, "operator_keys": ["0" * 64]}))
    path.chmod(0o600)
    out, err = told(capsys, registry, "check", str(path))
    assert (out, err) == (f"The policy file {path} can be used; it has {counted} and 1 operator key.\n", "")


def test_a_grant_that_nothing_needs_is_told(
    registry: Registry, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tmp_path.chmod(0o700)
    path = tmp_path / "policy.json"
    rows = {"allow": ["read mcp:*", "execute verb:x"], "ask": ["read mpc:*"], "deny": ["write proces:spawn"]}
    path.write_text(json.dumps({"subjects": {"ada": rows}}))
    path.chmod(0o600)
    out, err = told(capsys, registry, "check", str(path))
    assert out.endswith("can be used; it has 1 subject and 0 operator keys.\n")
    assert err.splitlines() == [
        f"sample-mcp: No call of this server needs `{grant}`, which `ada` has."
        for grant in ("read mpc:*", "write proces:spawn")
    ]


@pytest.mark.parametrize("content", [None, "{", '{"subjects": 1}', "\xff", '{"subjects": {}}'])
def test_a_path_steers_no_terminal(
    content: str | None, registry: Registry, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tmp_path.chmod(0o700)
    path = tmp_path / "policy\x1b[31m\u202e.json"
    if content is not None:
        path.write_bytes(content.encode("latin-1"))
        path.chmod(0o600)
    out, err = told(capsys, registry, "check", str(path), code=int(content != '{"subjects": {}}'))
    assert (out + err).strip().isprintable()
    assert f"{tmp_path}/policy\\u001b[31m\\u202e.json" in out + err


def test_what_is_wrong_with_a_file_is_told(
    registry: Registry, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tmp_path.chmod(0o700)
    path = tmp_path / "policy.yaml"
    out, err = told(capsys, registry, "check", str(path), code=1)
    assert (out, err) == ("", f"sample-mcp: The policy file {path} is not there.\n")
    path.write_text("subjects: {ada: {allow: ['*']}}")
    path.chmod(0o600)
    out, err = told(capsys, registry, "check", str(path), code=1)
    assert out == ""
    assert f"sample-mcp: The policy file {path} cannot be used, subject `ada`, `allow`, entry 1: `*` must be" in err


@pytest.mark.parametrize("words", [[], ["nope"], ["check"], ["key", "more"], ["check", "a", "b"]])
def test_wrong_usage_is_told(words: list[str], registry: Registry, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["policy", *words], registry)
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "usage: sample-mcp policy" in err


def test_nothing_of_the_server_is_loaded() -> None:
    command = [sys.executable, "-X", "importtime", "-c", RUN, json.dumps(DATA), "policy", "key"]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "verbc.support.policy_file" in ended.stderr
    for heavy in ("sqlalchemy", "pydantic", "jsonschema_rs", "asyncio", "yaml", "mcp_types"):
        assert f" {heavy}\n" not in ended.stderr

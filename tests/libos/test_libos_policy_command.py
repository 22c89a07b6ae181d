"""The operator's command for policies: keys, and what is wrong with a file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.warm_starts import Run

from .places import Place
from .processes import KEY_VARIABLE, environment, run_command

RIGHT = """\
subjects:
  writer:
    allow:
      - read mcp_server:*
      - write process:spawn
    ask:
      - write mcp:*
      - {right: "execute mcp:calendar:move", approver: client}
    deny: ["read mcp:calendar:private"]
    budget: {calls: 1000, bytes: 64MiB, per: 1d}
  reader: {allow: ["read mcp_server:*"]}
operator_keys: []
audit: {previews: true}
"""
WRONG = {
    "subjects: {}\nunknown: 1\n": "unknown",
    "subjects: {a: {allow: [read *]}}\n": "allow",
    "subjects: {a: {allow: ['read mcp:a*']}}\n": "allow",
    "subjects: {a: {allow: ['read mcp:*:a']}}\n": "allow",
    "subjects: {a: {allow: ['fly mcp:a:b']}}\n": "allow",
    "subjects: {a: {allow: ['*']}}\n": "allow",
    "subjects: {a: {allow: read mcp:a:b}}\n": "allow",
    "subjects: {a: {ask: [{right: 'read mcp:a:b', approver: nobody}]}}\n": "approver",
    "subjects: {a: {ask: [{right: 'read mcp:a:b', when: now}]}}\n": "when",
    "subjects: {a: {grant: []}}\n": "grant",
    "subjects: {a: {budget: {calls: -1, per: 1d}}}\n": "calls",
    "subjects: {a: {budget: {calls: 1}}}\n": "per",
    "subjects: {a: {budget: {bytes: many, per: 1d}}}\n": "bytes",
    "subjects: {a: {budget: {calls: 1, per: soon}}}\n": "per",
    "subjects: {}\noperator_keys: [abc]\n": "operator_keys",
    "subjects: {}\naudit: {previews: maybe}\n": "previews",
    "subjects: {a: {}}\nsubjects: {b: {}}\n": "subjects",
    "subjects: [": "",
    "- 1\n": "",
}


def checked(folder: Path, text: str, mode: int = 0o600) -> Run:
    file = folder / "checked.yaml"
    file.write_text(text)
    file.chmod(mode)
    return run_command(["policy", "check", str(file)], env=environment(), cwd=folder)


def test_a_policy_that_is_right_is_said_to_be(libos_mcp: Path, tmp_path: Path) -> None:
    said = checked(tmp_path, RIGHT)
    assert (said.returncode, said.stderr) == (0, "")
    assert checked(tmp_path, '{"subjects": {}}').returncode == 0


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_named(libos_mcp: Path, tmp_path: Path, text: str) -> None:
    said = checked(tmp_path, text)
    assert said.returncode == 1
    assert WRONG[text] in said.stderr
    assert "checked.yaml" in said.stderr
    assert "Traceback" not in said.stderr


def test_a_file_that_others_can_write_is_none(libos_mcp: Path, tmp_path: Path) -> None:
    for mode in (0o620, 0o602):
        assert checked(tmp_path, RIGHT, mode).returncode == 1
    tmp_path.chmod(0o777)
    assert checked(tmp_path, RIGHT).returncode == 1
    tmp_path.chmod(0o700)
    assert checked(tmp_path, RIGHT).returncode == 0
    assert run_command(["policy", "check", str(tmp_path)], env=environment(), cwd=tmp_path).returncode == 1
    assert run_command(["policy", "check", "/dev/null"], env=environment(), cwd=tmp_path).returncode == 1
    assert checked(tmp_path, RIGHT + "#" * (1 << 20)).returncode == 1


def test_keys_are_new_and_long(libos_mcp: Path, tmp_path: Path) -> None:
    made = [run_command(["policy", "key"], env=environment(), cwd=tmp_path) for _ in range(2)]
    keys = [run.stdout.strip() for run in made]
    assert keys[0] != keys[1]
    assert min(map(len, keys)) >= 43  # 256 bits, six a character
    for run, key in zip(made, keys, strict=True):
        assert len(re.findall(r"\b[0-9a-f]{64}\b", run.stderr)) == 1
        assert key not in run.stderr


def test_the_file_is_read_again_when_it_has_changed(place: Place) -> None:
    place.done("servers", "list")
    digest, place.digest = place.digest, "0" * 64
    place.policy({})
    assert place.operator("servers", "list").returncode != 0
    place.digest = digest
    place.policy({})
    place.done("servers", "list")


def test_a_server_must_not_have_the_key(place: Place) -> None:
    variables = {**place.variables, KEY_VARIABLE: place.key}
    for words in ([], ["--http", "--port", "0"]):
        said = run_command([*words, *place.words], env=variables, cwd=place.folder)
        assert said.returncode == 2
        assert KEY_VARIABLE in said.stderr
        assert place.key not in said.stderr

"""Where a gateway lives: its state, its policy, its operator, and the servers that are started there."""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.warm_starts import Run

from .processes import KEY_VARIABLE, PROGRAM, Gateway, HttpGateway, environment, run_command
from .scripted import Json

LAUNCH = ("write process:spawn", "execute mcp_stdio:*")
SUBJECT = "agent"


def rules(
    allow: Sequence[str] = (), ask: Sequence[Any] = (), deny: Sequence[str] = (), budget: Json | None = None
) -> Json:
    """The rules of one subject; what starts servers over stdio is among them."""
    return {
        "allow": [*LAUNCH, *allow],
        "ask": list(ask),
        "deny": list(deny),
        **({"budget": budget} if budget is not None else {}),
    }


@dataclass(slots=True)
class Place:
    """One gateway's folder. `key` is its operator's, `digest` what the policy file says of it."""

    folder: Path
    key: str
    digest: str
    store: str | None = None  # an address, in place of the file in the state folder
    env: dict[str, str] = field(default_factory=dict)  # of servers and commands alike
    started: int = 0

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.policy({})

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def policy_file(self) -> Path:
        return self.folder / "policy.json"

    def policy(self, subjects: Mapping[str, Json], **more: Any) -> None:
        """The policy from now on."""
        whole = {"subjects": dict(subjects), "operator_keys": [self.digest], **more}
        new = self.policy_file.with_suffix(".new")
        new.write_text(json.dumps(whole))
        new.chmod(0o600)
        os.replace(new, self.policy_file)

    def grant(self, *allow: str, ask: Sequence[Any] = (), deny: Sequence[str] = (), budget: Json | None = None) -> None:
        """What the one subject may do from now on; to start servers it may."""
        self.policy({SUBJECT: rules(allow, ask, deny, budget)})

    @property
    def words(self) -> list[str]:
        """The options that servers and commands share."""
        return ["--policy", str(self.policy_file), "--state", str(self.state)]

    @property
    def variables(self) -> dict[str, str]:
        """The environment of a server."""
        return environment({**self.env, **({"LIBOS_MCP_STORE": self.store} if self.store else {})})

    def operator(
        self,
        *words: str,
        stdin: bytes = b"",
        key: str | None = "",
        env: Mapping[str, str] | None = None,
        program: Sequence[str] = PROGRAM,
    ) -> Run:
        """The operator's command, with the right key unless another one, or None, is given."""
        given = self.key if key == "" else key
        variables = {**self.variables, **({KEY_VARIABLE: given} if given is not None else {}), **(env or {})}
        first, *rest = words
        return run_command([first, *rest, *self.words], env=variables, cwd=self.folder, stdin=stdin, program=program)

    def done(self, *words: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> str:
        """What the operator's command prints, when all is well."""
        ended = self.operator(*words, stdin=stdin, env=env)
        assert ended.returncode == 0, (words, ended.stdout, ended.stderr)
        return ended.stdout

    def refused(self, *words: str, stdin: bytes = b"", key: str | None = "") -> str:
        """What it says when it doesn't do it."""
        ended = self.operator(*words, stdin=stdin, key=key)
        assert ended.returncode == 1, (words, ended.returncode, ended.stdout, ended.stderr)
        assert "Traceback" not in ended.stderr
        return ended.stderr

    def manifest_file(self, manifest: Json) -> Path:
        """A manifest in a file of its own."""
        file = self.folder / f"{secrets.token_hex(6)}.json"
        file.write_text(json.dumps(manifest))
        return file

    def add(self, manifest: Json) -> None:
        """Register a server."""
        self.done("servers", "add", str(self.manifest_file(manifest)))

    def replace(self, manifest: Json) -> None:
        """Register it anew; it is suspended then."""
        self.done("servers", "replace", str(self.manifest_file(manifest)))

    def confirm(self, server_id: str) -> None:
        self.done("servers", "confirm", server_id)

    def approve(self, approval: Mapping[str, Any]) -> None:
        self.done("approvals", "approve", str(approval["id"]))

    def reject(self, approval: Mapping[str, Any]) -> None:
        self.done("approvals", "reject", str(approval["id"]))

    def audit(self, *words: str) -> list[Json]:
        """All rows, oldest first."""
        return [json.loads(line) for line in self.done("audit", "--limit", "1000", *words).splitlines()]

    def approvals(self, *words: str) -> list[str]:
        """The ids of approvals, as the operator sees them listed."""
        return re.findall(r"\bappr_[0-9a-f]+", self.done("approvals", "list", *words))

    @contextmanager
    def serving(
        self,
        subject: str = SUBJECT,
        *words: str,
        env: Mapping[str, str] | None = None,
        program: Sequence[str] = PROGRAM,
    ) -> Iterator[Gateway]:
        """A server over stdio for this subject."""
        self.started += 1
        log = self.folder / f"server-{self.started}.log"
        variables = {**self.variables, **(env or {})}
        with Gateway([*self.words, "--as", subject, *words], env=variables, log=log, program=program) as gateway:
            yield gateway

    @contextmanager
    def serving_http(self, *words: str, env: Mapping[str, str] | None = None) -> Iterator[HttpGateway]:
        """A server over HTTP for the one subject."""
        self.started += 1
        log = self.folder / f"server-{self.started}.log"
        gateway = HttpGateway([*self.words, "--as", SUBJECT, *words], env={**self.variables, **(env or {})}, log=log)
        try:
            yield gateway
        finally:
            gateway.close()

    def files(self) -> dict[str, bytes]:
        """All bytes that servers keep or have logged, by file."""
        logs = self.folder.glob("server-*.log")
        kept = (path for path in self.state.rglob("*") if path.is_file())
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in (*logs, *kept)}

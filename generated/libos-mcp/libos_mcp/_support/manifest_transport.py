"""How the server of a manifest is reached: a program that is started, or an address."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

from .fingerprint import digest
from .manifest_addresses import header_objection, upstream_url
from .manifest_fields import FieldError, ManifestProblem, Members, Path, anything, matching, one_of, or_null, texts
from .quoting import listed, quoted

_VARIABLE: Final = matching("[A-Za-z_][A-Za-z0-9_]*", "must be the name of an environment variable", 256)
_NO_COMMAND: Final = re.compile(r"[\s;&|<>\x00-\x1f\x7f]|\A~")
_DRIVE: Final = re.compile(r"[A-Za-z]:")
_PREFIXES: Final = ("", "Bearer ", "Token ", "Basic ")

# Tells the name of a variable here that a manifest may read from any other, for which it raises FieldError.
Variables: TypeAlias = Callable[[Any], str]


@dataclass(frozen=True)
class Stdio:
    """A program that is started. `env` leads from variables of the program to those here; there are no values."""

    command: str
    args: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str | None  # below the working folder, without `.` and `..` in it

    @cached_property
    def authority(self) -> str:
        """`mcp_stdio:<64 hex digits>`: what the right to start exactly this is on."""
        env = [list(pair) for pair in sorted(self.env.items())]
        return f"mcp_stdio:{digest({'command': self.command, 'args': self.args, 'env': env, 'cwd': self.cwd})}"

    @property
    def data(self) -> dict[str, Any]:
        """The normal form."""
        return {"command": self.command, "args": list(self.args), "env": dict(self.env), "cwd": self.cwd}


@dataclass(frozen=True, slots=True)
class Header:
    """The value of a header: a variable here, between two fixed texts."""

    env: str
    prefix: str
    suffix: str


@dataclass(frozen=True)
class Http:
    """An address of the streamable HTTP transport, and the headers that each request has."""

    url: str
    headers: Mapping[str, Header]

    @property
    def data(self) -> dict[str, Any]:
        """The normal form."""
        headers = {
            name: {"env": header.env, "prefix": header.prefix, "suffix": header.suffix}
            for name, header in self.headers.items()
        }
        return {"url": self.url, "headers": headers}


def readable_variables(allowed: tuple[str, ...], reserved: tuple[str, ...]) -> Variables:
    """Names that `allowed` has, itself or by a pattern that ends in `*`, and that `reserved` has not."""

    def check(value: Any) -> str:
        name: str = _VARIABLE(value)
        if name in reserved:
            raise FieldError("must not name a variable that is this server's own")
        if not any(name == entry or (entry.endswith("*") and name.startswith(entry[:-1])) for entry in allowed):
            raise FieldError(
                f"must name a variable that a manifest may read: {listed(list(allowed)) or 'there is none'}"
            )
        return name

    return check


def read_stdio(value: Any, path: Path, problems: list[ManifestProblem], variables: Variables) -> Stdio:
    """The block `stdio` of a manifest; what is wrong is noted."""
    block = Members(value, path, problems, what="`stdio`")
    read = Stdio(
        command=block.take("command", _command),
        args=block.take("args", texts, ()),
        env=_env(block, variables),
        cwd=block.take("cwd", or_null(_folder), None),
    )
    block.rest()
    return read


def read_http(value: Any, path: Path, problems: list[ManifestProblem], variables: Variables) -> Http:
    """The block `http` of a manifest; what is wrong is noted."""
    block = Members(value, path, problems, what="`http`")
    read = Http(url=block.take("url", upstream_url), headers=_headers(block, variables))
    block.rest()
    return read


def _command(value: Any) -> str:
    if not isinstance(value, str) or not value or _NO_COMMAND.search(value):
        raise FieldError("must be one word without white space and without any of ; & | < >, and not begin with ~")
    return value


def _folder(value: Any) -> str | None:
    if not isinstance(value, str) or "\0" in value:
        raise FieldError("must be a folder below the working folder")
    steps: list[str] = []
    path = value.replace("\\", "/")
    if path.startswith("/") or _DRIVE.match(path):
        raise FieldError("must be relative to the working folder")
    for step in path.split("/"):
        if step == ".." and not steps:
            raise FieldError("must not lead out of the working folder")
        if step == "..":
            steps.pop()
        elif step not in ("", "."):
            steps.append(step)
    return "/".join(steps) or None


def _env(block: Members, variables: Variables) -> dict[str, str]:
    pairs = Members(block.take("env", anything, {}), (*block.path, "env"), block.problems, what="`env`")
    for name in pairs.names():
        try:
            _VARIABLE(name)
        except FieldError as error:
            pairs.note(f"{quoted(name)} {error}", name)
    return {name: pairs.take(name, variables) for name in pairs.names()}


def _headers(block: Members, variables: Variables) -> dict[str, Header]:
    found = Members(block.take("headers", anything, {}), (*block.path, "headers"), block.problems, what="`headers`")
    seen: set[str] = set()
    headers = {}
    for name in found.names():
        objection = "stands there twice" if name.lower() in seen else header_objection(name)
        if objection:
            found.note(f"{quoted(name)} {objection}", name)
        seen.add(name.lower())
        headers[name] = _header(found.take(name, anything), (*found.path, name), found.problems, variables)
    return headers


def _header(value: Any, path: Path, problems: list[ManifestProblem], variables: Variables) -> Header:
    members = Members(value, path, problems, what="a header")
    read = Header(
        env=members.take("env", variables),
        prefix=members.take("prefix", one_of(*_PREFIXES), ""),
        suffix=members.take("suffix", one_of(""), ""),
    )
    members.rest()
    return read

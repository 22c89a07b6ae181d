"""How keys are to be verified: what the registry says of it, or the command line, with values from the environment."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from .environment import MissingVariableError, expand
from .quoting import listed, quoted
from .registry import JsonObject
from .service_address import AddressError, service_address
from .strict_json import Unacceptable, parse
from .verify_backend import BackendSettings
from .verify_introspection import IntrospectionSettings
from .verify_jwt import ALGORITHMS, JwtSettings

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile(r"[!-~](?:[ \t!-~]*[!-~])?")
_QUERY = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@/?%-]*")


class SettingsError(Exception):
    """Keys cannot be verified in the way that is said; the text is a sentence, and holds nothing of the environment."""


@dataclass(frozen=True, slots=True)
class KeysSettings:
    """Which file has the keys."""

    file: Path


Settings: TypeAlias = KeysSettings | IntrospectionSettings | JwtSettings | BackendSettings

# What a way has beside its main setting, where nothing else is said. `...`: it has to be said.
_CLAIMS: Final[JsonObject] = {"subject": "sub", "account": None, "scopes": "scope"}
_WAYS: Final[Mapping[str, JsonObject]] = {
    "keys": {},
    "introspect": {"headers": {}, **_CLAIMS},
    "jwt": {"algorithms": ..., "issuer": ..., "audience": ..., **_CLAIMS},
}


def verify_settings(access: JsonObject | None, told: str | None, environ: Mapping[str, str]) -> Settings | None:
    """How keys are verified; None when nobody says that they are.

    `access` is that of the registry. `told` takes the place of what it says: `keys=FILE`, `introspect=URL` or `jwt=URL`,
    with the further settings of the registry where it goes the same way, or all of it as the JSON object that would stand
    in a spec. Raises SettingsError.
    """
    built_in: JsonObject | None = (access or {}).get("verify")
    way = built_in if told is None else _told(told, built_in or {})
    if way is None:
        return None
    try:
        return _settings(way, lambda text: expand(text, environ))
    except MissingVariableError as error:
        raise SettingsError(str(error)) from None


def _told(text: str, built_in: JsonObject) -> JsonObject:
    """The way that somebody tells who starts the server."""
    if text.startswith("{"):
        return _complete(_object(text))
    way, _, value = text.partition("=")
    if way not in _WAYS or not value:
        raise SettingsError("How keys are verified is told as keys=FILE, introspect=URL, jwt=URL or a JSON object.")
    return _complete({**(built_in if way in built_in else {}), way: value})


def _object(text: str) -> JsonObject:
    try:
        found = parse(text)
    except Unacceptable as error:
        raise SettingsError(f"The JSON object that tells how keys are verified {error.reason}.") from None
    if not isinstance(found, dict) or not found.keys() & _WAYS.keys():
        raise SettingsError(f"The JSON object that tells how keys are verified has none of {listed([*_WAYS])}.")
    return found


def _complete(told: JsonObject) -> JsonObject:
    """All the settings of a way, each of the form that it has to have."""
    way = next(way for way in _WAYS if way in told)
    settings = {**_WAYS[way], **told}
    if unknown := sorted(settings.keys() - _WAYS[way].keys() - {way}):
        raise SettingsError(f"To verify keys by {quoted(way)} has no setting {quoted(unknown[0])}.")
    if missing := [name for name, value in settings.items() if value is ...]:
        raise SettingsError(
            f"To verify keys by {quoted(way)} takes {listed(missing)}; tell all of it as a JSON object."
        )
    for name, value in settings.items():
        fits, form = _FORMS.get(name, _TEXT)
        if not fits(value):
            raise SettingsError(f"{quoted(name)} has to be {form}.")
    return settings


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value.isprintable() and bool(value)


def _is_headers(value: Any) -> bool:
    return isinstance(value, dict) and all(
        _HEADER_NAME.fullmatch(name) and isinstance(text, str) for name, text in value.items()
    )


def _is_algorithms(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(name in sorted(ALGORITHMS) for name in value)


_TEXT: Final = (_is_text, "a text on one line, and not empty")
_FORMS: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = {
    "headers": (_is_headers, "an object with a text for each header"),
    "algorithms": (_is_algorithms, f"a list with some of {', '.join(sorted(ALGORITHMS))}"),
    "account": (lambda value: value is None or _is_text(value), "a text on one line, or null"),
}


def _settings(way: JsonObject, expanded: Callable[[str], str]) -> Settings:
    """Settings of a known form. Raises SettingsError for values that cannot be used, and MissingVariableError."""
    match way:
        case {"keys": file}:
            return KeysSettings(Path(expanded(file)))
        case {"introspect": url, "headers": headers, **named}:
            told = {name: _header(name, expanded(text)) for name, text in headers.items()}
            return IntrospectionSettings(_address("the introspection service", expanded(url)), told, **named)
        case {"jwt": url, "algorithms": algorithms, "issuer": issuer, "audience": audience, **named}:
            address = _address("the published keys", expanded(url))
            return JwtSettings(address, tuple(algorithms), expanded(issuer), expanded(audience), **named)
        case {"target": [method, path], **named}:
            return BackendSettings(target=(method, path), **named)
        case _:
            raise SettingsError("The registry has a way to verify keys that this server does not know.")


def _address(what: str, text: str) -> str:
    base, _, query = text.partition("?")
    try:
        service_address(base, plain=False)
        if not _QUERY.fullmatch(query):
            raise AddressError("has a query with characters that no address has")
    except AddressError as error:
        raise SettingsError(f"The address of {what} {error}.") from None
    return text


def _header(name: str, value: str) -> str:
    if not _HEADER_VALUE.fullmatch(value):
        raise SettingsError(f"The header {quoted(name)} is configured with what no header can hold.")
    return value

"""The scalars of the spec language: how each is read, and what is said when it does not fit.

A scalar written without quotes is text where text is wanted, whatever it looks like.
"""

import json
import keyword
import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from .source import native
from .written import as_text

LAST_PORT = 65535


def _fault(message: str) -> PydanticCustomError:
    # Braces would be read as places of a template.
    return PydanticCustomError("verbc", "{message}", {"message": message})


def _one_line(value: str) -> str:
    if not value.strip():
        raise _fault("must not be empty")
    if len(value.strip().splitlines()) > 1:
        raise _fault("must be one line")
    return value.strip()


def _expanded(value: str) -> str:
    if "${" in re.sub(r"\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^{}]*)?\}", "", value):
        raise _fault("must name a variable as ${NAME} or ${NAME:-default}")
    return value


def _filled(value: Any) -> Any:
    if isinstance(value, list | dict) and not value:
        raise _fault("must not be empty")
    return value


def _date(value: str) -> str:
    try:
        date.fromisoformat(value)
    except ValueError:
        raise _fault("must be a date such as 2026-09-30") from None
    return value


def _one_of(*choices: Any) -> Callable[[Any], Any]:
    """A check for plain values, which never takes `1` for `true`."""

    def check(value: Any) -> Any:
        value = native(value)
        if not any(type(value) is type(choice) and value == choice for choice in choices):
            shown = [json.dumps(choice) for choice in choices]
            raise _fault(f"must be {' or '.join([', '.join(shown[:-1]), shown[-1]] if shown[1:] else shown)}")
        return value

    return check


def _matching(pattern: str, sentence: str) -> Callable[[str], str]:
    """A check that a text has a form, told by a sentence when it has not."""
    compiled = re.compile(pattern)

    def check(value: str) -> str:
        if not compiled.fullmatch(value):
            raise _fault(sentence)
        return value

    return check


def _number(value: Any) -> Any:
    value = native(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _fault("must be a decimal number")
    if value in (float("inf"), float("-inf")):
        raise _fault("must be a number that fits; this one is too large")
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _count(value: Any) -> Any:
    value = _number(value)
    if not isinstance(value, int) or value < 0:
        raise _fault("must be a whole number, 0 or more")
    return value


def _port(value: Any) -> Any:
    value = _count(value)
    if value > LAST_PORT:
        raise _fault(f"must be a port, 0 to {LAST_PORT}")
    return value


def _truth(value: Any) -> Any:
    value = native(value)
    if not isinstance(value, bool):
        raise _fault("must be true or false")
    return value


_BYTES = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def _quantity(units: Mapping[str, float], example: str) -> Callable[[Any], Any]:
    pattern = re.compile(f"([1-9][0-9]{{0,14}})({'|'.join(units)})")

    def check(value: Any) -> Any:
        parts = pattern.fullmatch(value) if isinstance(value, str) else None
        if parts is None:
            raise _fault(f"must be an amount such as {example}")
        return int(parts[1]) * units[parts[2]]

    return check


# Editors read YAML their own way and see numbers where the language sees text.
_TEXT_SCHEMA = {"type": ["string", "number", "boolean"]}


def form(pattern: str, sentence: str) -> Any:
    """A text of a form, for annotations; `sentence` goes on after the name of what does not have it."""
    return Annotated[
        str,
        BeforeValidator(as_text),
        AfterValidator(_matching(pattern, sentence)),
        WithJsonSchema({**_TEXT_SCHEMA, "pattern": f"^({pattern})$"}),
    ]


Text = Annotated[str, BeforeValidator(as_text), WithJsonSchema(_TEXT_SCHEMA)]
Line = Annotated[Text, AfterValidator(_one_line)]
Expanded = Annotated[Line, AfterValidator(_expanded)]  # `${NAME}` in it is read from the environment at start
ExpandedText = Annotated[Text, AfterValidator(_expanded)]
Truth = Annotated[bool, BeforeValidator(_truth)]
Number = Annotated[int | float, BeforeValidator(_number)]
Count = Annotated[int, BeforeValidator(_count)]
Bytes = Annotated[
    int, BeforeValidator(_quantity(_BYTES, "1MiB, 256KiB or 1000000")), WithJsonSchema({"type": ["string", "integer"]})
]
Seconds = Annotated[float, BeforeValidator(_quantity(_SECONDS, "60s, 5m or 100ms")), WithJsonSchema({"type": "string"})]
FormatVersion = Annotated[Literal[1], BeforeValidator(_one_of(1))]
Idempotency = Annotated[Literal[True, False, "key", "derived"], BeforeValidator(_one_of(True, False, "key", "derived"))]
Date = Annotated[
    Text, AfterValidator(_matching(r"\d{4}-\d{2}-\d{2}", "must be a date such as 2026-09-30")), AfterValidator(_date)
]
_REQUIREMENT = (
    r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?(\[[A-Za-z0-9._, -]+\])?"
    r"( ?[<>=!~]=?=? ?[^\s,;<>=!~]+(, ?[<>=!~]=?=? ?[^\s,;<>=!~]+)*)?( ?; ?.+)?"
)
Requirement = Annotated[Line, AfterValidator(_matching(_REQUIREMENT, "must be requirements such as pyyaml>=6"))]
Filled = BeforeValidator(_filled)  # on lists and maps that must not be empty
# Data whose meaning a schema decides later: `Plain` scalars are kept as they are.
Data = Annotated[Any, Field(description="any JSON value")]

VerbName = form(
    r"(?=.{1,64}$)[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z0-9][A-Za-z0-9_-]*)*(_?<agent>)?",
    "must be 1 to 64 letters, digits, _ and -, in parts joined by dots, and begin with a letter",
)
ParameterName = form(
    r"(?!\s)[^\x00-\x1f\x7f-\x9f\u2028\u2029]{1,128}(?<!\s)", "must be 1 to 128 characters on one line"
)
TypeName = form(r"[A-Z][A-Za-z0-9]{0,39}", "must be a name like RunId, of at most 40 characters")
BackendName = form(
    r"(?!(as|positional|json|held|reply|refusals)$)[a-z][a-z0-9_]{0,31}",
    "must be lower-case letters, digits and _, at most 32, and no option of `run`",
)
KindName = form(r"[a-z][a-z0-9_]{0,39}", "must be lower-case letters, digits and _, at most 40")
ServerName = form(
    r"(?=.{1,36}$)[a-z][a-z0-9]*(-[a-z0-9]+)*", "must be at most 36 lower-case letters and digits, in parts joined by -"
)
Package = form(
    rf"(?!({'|'.join(keyword.kwlist)})$)[a-z][a-z0-9_]{{0,39}}",
    "must be a lower-case Python name of at most 40 characters",
)
Version = form(r"[0-9]+(\.[0-9]+)*((a|b|rc)[0-9]+)?", "must be a version such as 1.4.0")
Pointer = form(r"(/([^~/]|~[01])*)*", "must be a JSON pointer such as /data/0")
Protocol = Annotated[
    Literal["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"], BeforeValidator(as_text)
]
PROTOCOLS: tuple[Protocol, ...] = get_args(get_args(Protocol)[0])  # newest first
_HOST = r"[A-Za-z0-9._-]{1,253}"
Host = form(rf"{_HOST}|[0-9A-Fa-f:.]+", "must be a name or an address, such as 127.0.0.1 or ::1")
ServedHost = form(
    rf"({_HOST}|\[[0-9A-Fa-f:.]+\])(:[0-9]{{1,5}})?", "must be a host, such as tools.example.org or 127.0.0.1:8080"
)
Origin = form(
    rf"https?://({_HOST}|\[[0-9A-Fa-f:.]+\])(:[0-9]{{1,5}})?", "must be an origin, such as https://app.example.org"
)
Port = Annotated[int, BeforeValidator(_port)]
UrlPath = form(r"/[A-Za-z0-9._~/-]*", "must be a path such as /mcp")
HeaderName = form(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", "must be the name of a header, such as X-Key")
Grant = form(
    r"(read|write|execute|admin) [a-z][a-z0-9_]*:\S+",
    "must be a right such as read job:42 or execute verb:*: read, write, execute or admin, then a kind and an id",
)
ExitCode = form(r"[1-9][0-9]{0,2}", "must be an exit code or status, 1 to 999")
Words = form(r"\S+( \S+)*", "must be words with one space between them")
Variable = form(
    r"[A-Za-z_][A-Za-z0-9_]*\*?|[A-Za-z_][A-Za-z0-9_]*=.*|\*[A-Za-z0-9_]+",
    "must be a variable such as PATH, LC_* or NO_COLOR=1",
)
HandlersFile = form(r"[a-z][a-z0-9_]*(\.py)?", "must be a file such as handlers.py, or a folder, beside the spec")

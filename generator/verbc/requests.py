"""How the parameters of a verb become a request to a REST service."""

import re
from dataclasses import dataclass

from .operations import KEY
from .spec import Run, Verb

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
WITHOUT_BODY = frozenset({"GET", "DELETE"})

_PLACE = re.compile(r"<([^<>/]+)>")


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a path: a word, or the parameter whose value stands there."""

    text: str
    is_parameter: bool


def method_and_path(target: str) -> tuple[str, tuple[Segment, ...]]:
    """The parts of a target such as `GET /jobs/<id>`."""
    method, _, path = target.partition(" ")
    parts = path.removeprefix("/").split("/")
    return method, tuple(
        Segment(place[1], True) if (place := _PLACE.fullmatch(part)) else Segment(part, False) for part in parts
    )


def places_of(target: str) -> list[str]:
    """The parameters that stand in the path of a target."""
    return _PLACE.findall(target)


def members(verb: Verb, run: Run, target: str) -> list[tuple[str, str]]:
    """The other parameters, each with the name by which the service knows it."""
    places = {*places_of(target), KEY}  # the key travels in a header of its own
    return [(name, run.as_.get(name, name)) for name in verb.params if name not in places]

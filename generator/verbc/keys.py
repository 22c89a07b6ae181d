"""Which keys the language has at a place: what an unknown key is compared with."""

from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, Tag

from .spec import Spec
from .written import TAG


def keys_at(path: tuple[int | str, ...]) -> frozenset[str]:
    """The keys of the map at a path of keys, indices and tags; none where any key is fine."""
    place: Any = Spec
    for part in path:
        place = _step(_bare(place), part)
    place = _bare(place)
    return frozenset(_fields(place)) if _is_model(place) else frozenset()


def _step(place: Any, part: int | str) -> Any:
    if isinstance(part, str) and part.startswith(TAG):
        return next((member for member in _members(place) if _tag(member) == part), place)
    if _is_model(place):
        return _fields(place).get(str(part))
    arguments = get_args(place)
    return arguments[-1] if get_origin(place) is dict else arguments[0] if arguments else None


def _bare(place: Any) -> Any:
    """An annotation without what is said about it, and without the None of an optional one."""
    if get_origin(place) is Annotated:
        return _bare(get_args(place)[0])
    members = [member for member in _members(place) if member is not NoneType]
    return _bare(members[0]) if len(members) == 1 else place


def _members(place: Any) -> tuple[Any, ...]:
    return get_args(place) if get_origin(place) in (Union, UnionType) else ()


def _tag(member: Any) -> str | None:
    return next((said.tag for said in get_args(member)[1:] if isinstance(said, Tag)), None)


def _fields(model: type[BaseModel]) -> dict[str, Any]:
    model.model_rebuild()  # names of models in its annotations are only looked up when it is built
    return {field.alias or name: field.annotation for name, field in model.model_fields.items()}


def _is_model(place: Any) -> bool:
    return isinstance(place, type) and issubclass(place, BaseModel)

"""The registry of servers: what each change leaves on record, what stands, what is found, and what the spec may change."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, create_engine, literal_column, text, update

from verbc.support import registrations
from verbc.support.manifest import Manifest
from verbc.support.registration_tables import REGISTRATIONS
from verbc.support.registrations import ABSENT_DIGEST, COMPONENT, Readable, Registration, RegistrationError
from verbc.support.store import Store

from .manifests import HTTP, STDIO, a_tool, over_http, over_stdio, read
from .registry_programs import emptied, opened

NOW = datetime(2026, 3, 4, 5, 6, 7, 89, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
ONE = read(over_stdio())
OTHER = read(over_stdio(warm=True))
THIRD = read(over_stdio(concurrency=1))

T = TypeVar("T")


class Registry:
    """The functions of the registry, each in a transaction of its own."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def find(self, server_id: str = "calendar", readable: Readable | None = None) -> Registration | None:
        more = () if readable is None else (readable,)
        return self.store.read(lambda connection: registrations.find(connection, server_id, *more))

    def known(self, server_id: str = "calendar") -> Registration:
        found = self.find(server_id)
        assert found is not None
        return found

    def add(self, manifest: Manifest = ONE, by: str | None = "operator", now: datetime = NOW) -> Registration:
        return self.write(lambda connection: registrations.add(connection, manifest, by, now))

    def replace(self, manifest: Manifest = ONE, by: str | None = "operator", now: datetime = NOW) -> Registration:
        return self.write(lambda connection: registrations.replace(connection, manifest, by, now))

    def remove(self, server_id: str = "calendar", by: str | None = "operator", now: datetime = NOW) -> Registration:
        return self.write(lambda connection: registrations.remove(connection, server_id, by, now))

    def confirm(self, server_id: str = "calendar", now: datetime = NOW) -> Registration:
        return self.write(lambda connection: registrations.confirm(connection, server_id, now))

    def seed(self, *manifests: Manifest, now: datetime = NOW) -> list[str]:
        wanted = self.store.read(lambda connection: registrations.needs_seeding(connection, manifests))
        before = self.every()
        changed = self.write(lambda connection: registrations.seed(connection, manifests, now))
        assert wanted == (before != self.every())
        assert not self.store.read(lambda connection: registrations.needs_seeding(connection, manifests))
        assert changed == [found for found in self.every() if found not in before and found.origin == "spec"]
        return [found.server_id for found in changed]

    def search(self, wanted: str | None = None, limit: int = 100) -> tuple[list[str], bool]:
        found, has_more = self.store.read(lambda connection: registrations.search(connection, wanted, limit))
        return [registration.server_id for registration in found], has_more

    def every(self) -> list[Registration]:
        return self.store.read(registrations.every)

    def stands(self, digest: str, generation: int, suspended: bool, server_id: str = "calendar") -> bool:
        return self.store.read(
            lambda connection: registrations.stands(connection, server_id, digest, generation, suspended)
        )

    def write(self, work: Callable[[Connection], T]) -> T:
        return self.store.write("registry", work)

    def by_hand(self, statement: str, **values: Any) -> None:
        self.write(lambda connection: connection.execute(text(statement), values) and None)

    def damage(self, column: str, value: Any) -> None:
        """Put something into a column of `calendar`."""
        statement = update(REGISTRATIONS).where(REGISTRATIONS.c.server_id == "calendar").values({column: value})
        self.write(lambda connection: connection.execute(statement) and None)


@pytest.fixture(params=["sqlite", "postgresql"])
def registry(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Registry]:
    database = str(tmp_path / "server.db") if request.param == "sqlite" else request.getfixturevalue("postgresql_url")
    emptied(database)
    store = opened(database)
    yield Registry(store)
    store.close()


# Changes


def test_what_never_was_registered(registry: Registry) -> None:
    assert registry.find() is None
    assert registry.stands(ABSENT_DIGEST, 0, False)
    assert not registry.stands(ABSENT_DIGEST, 1, False)
    assert not registry.stands(ABSENT_DIGEST, 0, True)
    assert not registry.stands(ONE.digest, 0, False)


def test_what_is_added_is_on_record(registry: Registry) -> None:
    added = registry.add()
    assert added == registry.find()
    assert added == Registration("calendar", ONE, ONE.digest, 1, False, "operator", (), "operator", NOW, NOW)
    assert registry.stands(ONE.digest, 1, False)


def test_an_id_is_taken_once(registry: Registry) -> None:
    before = registry.add()
    with pytest.raises(
        RegistrationError, match=r"^There is a server `calendar` already; replace it, or choose another"
    ):
        registry.add(OTHER, now=LATER)
    assert registry.find() == before


def test_what_is_replaced_is_suspended(registry: Registry) -> None:
    registry.add()
    replaced = registry.replace(OTHER, "somebody", LATER)
    assert replaced == registry.find()
    assert replaced == Registration("calendar", OTHER, OTHER.digest, 2, True, "operator", (), "somebody", NOW, LATER)


def test_the_same_once_more_is_a_generation_of_its_own(registry: Registry) -> None:
    registry.add()
    registry.replace()
    assert registry.stands(ONE.digest, 2, True)
    assert not registry.stands(ONE.digest, 1, False)
    assert not registry.stands(ONE.digest, 1, True)


def test_what_is_removed_is_known_by_its_generation_alone(registry: Registry) -> None:
    registry.add()
    removed = registry.remove("calendar", "somebody", LATER)
    assert removed == registry.find()
    assert removed == Registration("calendar", None, ABSENT_DIGEST, 2, True, "operator", (), "somebody", NOW, LATER)
    assert registry.stands(ABSENT_DIGEST, 2, True)
    assert not registry.stands(ABSENT_DIGEST, 0, False)


def test_an_id_that_comes_back_goes_on_where_it_was(registry: Registry) -> None:
    registry.add()
    registry.remove()
    again = registry.add(now=LATER)
    assert (again.generation, again.suspended, again.created_at, again.updated_at) == (3, True, LATER, LATER)
    assert again.manifest == ONE


def test_a_way_there_and_back_never_leads_to_what_was(registry: Registry) -> None:
    seen = [registry.add()]
    for change in (registry.replace, registry.remove, registry.add, registry.confirm, registry.replace):
        seen.append(change())
    assert [found.generation for found in seen] == [1, 2, 3, 4, 4, 5]
    assert [found.suspended for found in seen] == [False, True, True, True, False, True]
    for found in seen[:-1]:
        assert not registry.stands(found.digest, found.generation, found.suspended)


def test_what_is_confirmed_is_no_longer_suspended(registry: Registry) -> None:
    registry.add()
    registry.replace(OTHER)
    confirmed = registry.confirm(now=LATER)
    assert confirmed == registry.find()
    assert (confirmed.suspended, confirmed.generation, confirmed.updated_at) == (False, 2, LATER)
    assert registry.confirm().suspended is False


@pytest.mark.parametrize("change", ["replace", "remove", "confirm"])
def test_what_is_not_there_cannot_be_changed(registry: Registry, change: str) -> None:
    for _ in range(2):  # once as it never was, once as it is removed
        before = registry.every()
        told = "The server `calendar` is removed." if before else "There is no server `calendar`."
        with pytest.raises(RegistrationError, match=f"^{re.escape(told)}$"):
            getattr(registry, change)()
        assert registry.every() == before
        if not before:
            registry.add()
            registry.remove()


def test_servers_do_not_touch_each_other(registry: Registry) -> None:
    other = registry.add(read(over_stdio(server_id="other")))
    registry.add()
    registry.replace()
    registry.remove()
    assert registry.find("other") == other
    assert registry.find("OTHER") is registry.find("othe") is None


@pytest.mark.parametrize("server_id", ["", "a\0", "\ud800", "a" * 97, "a:b", "%", "' OR 1=1 --", "é"])
def test_what_is_no_id_is_not_there(registry: Registry, server_id: str) -> None:
    registry.add()
    assert registry.find(server_id) is None
    assert registry.stands(ABSENT_DIGEST, 0, False, server_id)
    for change in (registry.remove, registry.confirm):
        with pytest.raises(RegistrationError, match="There is no server"):
            change(server_id)


def test_a_write_that_fails_later_leaves_no_trace(registry: Registry) -> None:
    before = registry.add()

    def work(connection: Connection) -> None:
        registrations.replace(connection, OTHER, None, NOW)
        registrations.remove(connection, "nobody", None, NOW)

    with pytest.raises(RegistrationError):
        registry.write(work)
    assert registry.find() == before


# What the spec offers


def test_what_is_seeded_is_of_the_spec(registry: Registry) -> None:
    other = read(over_http(server_id="other"))
    assert registry.seed(ONE, other) == ["calendar", "other"]
    assert registry.known() == Registration(
        "calendar", ONE, ONE.digest, 1, False, "spec", (ONE.digest,), None, NOW, NOW
    )


def test_the_same_digest_changes_nothing(registry: Registry) -> None:
    registry.seed(ONE)
    before = registry.every()
    assert registry.seed(read(over_stdio(timeout_s=10.0)), now=LATER) == []
    assert registry.every() == before


def test_another_digest_replaces_what_is_of_the_spec(registry: Registry) -> None:
    registry.seed(ONE)
    assert registry.seed(OTHER, now=LATER) == ["calendar"]
    assert registry.known() == Registration(
        "calendar", OTHER, OTHER.digest, 2, True, "spec", (ONE.digest, OTHER.digest), None, NOW, LATER
    )


def test_what_the_spec_once_offered_is_never_registered_again(registry: Registry) -> None:
    registry.seed(ONE)
    registry.seed(OTHER)
    registry.confirm()
    before = registry.every()
    for manifest in (ONE, OTHER, ONE):  # as two versions of a package take turns
        assert registry.seed(manifest, now=LATER) == []
    assert registry.every() == before
    assert registry.seed(THIRD, now=LATER) == ["calendar"]


def test_the_digests_of_the_last_50_are_remembered(registry: Registry) -> None:
    manifests = [read(over_stdio(metadata={"version": version})) for version in range(52)]
    for manifest in manifests:
        registry.seed(manifest)
    assert registry.known().seed_digests == tuple(manifest.digest for manifest in manifests[2:])
    assert registry.seed(manifests[2]) == []
    assert registry.seed(manifests[1]) == ["calendar"]


def test_what_an_operator_has_registered_stays(registry: Registry) -> None:
    before = registry.add()
    assert registry.seed(OTHER) == []
    assert registry.known() == Registration(
        "calendar",
        ONE,
        ONE.digest,
        1,
        False,
        "operator",
        (OTHER.digest,),
        "operator",
        before.created_at,
        before.updated_at,
    )


def test_what_an_operator_has_replaced_stays(registry: Registry) -> None:
    registry.seed(ONE)
    registry.replace(OTHER)
    registry.confirm()
    before = registry.every()
    assert registry.seed(ONE) == []
    assert registry.every() == before
    assert registry.seed(THIRD) == []
    assert (registry.known().manifest, registry.known().seed_digests) == (OTHER, (ONE.digest, THIRD.digest))
    assert registry.stands(OTHER.digest, 2, False)


def test_what_an_operator_has_removed_stays_away(registry: Registry) -> None:
    registry.seed(ONE)
    registry.remove()
    assert registry.seed(ONE) == []
    assert registry.seed(OTHER) == []
    assert registry.stands(ABSENT_DIGEST, 2, True)


def test_what_the_spec_no_longer_offers_stays(registry: Registry) -> None:
    registry.seed(ONE)
    before = registry.every()
    assert registry.seed() == []
    assert registry.every() == before


# What is found


def test_servers_come_in_the_order_of_their_ids(registry: Registry) -> None:
    for server_id in ("b", "B", "a.1", "a-1", "a"):
        registry.add(read(over_stdio(server_id=server_id)))
    assert registry.search() == (["B", "a", "a-1", "a.1", "b"], False)
    assert registry.search(limit=5) == (["B", "a", "a-1", "a.1", "b"], False)
    assert registry.search(limit=4) == (["B", "a", "a-1", "a.1"], True)
    assert registry.search(limit=1) == (["B"], True)


def test_what_cannot_be_called_is_not_found(registry: Registry) -> None:
    for server_id in ("a", "b", "c"):
        registry.add(read(over_stdio(server_id=server_id)))
    registry.remove("a")
    registry.by_hand("UPDATE registrations SET manifest = '{}' WHERE server_id = 'b'")
    assert registry.search(limit=1) == (["c"], False)
    assert [found.server_id for found in registry.every()] == ["a", "b", "c"]


@pytest.mark.parametrize(
    "wanted",
    ["calendar", "CAL.PUT", "event_g", "python3", "calendar_server", "straße", "STRASSE", "Größe", "stdio", ""],
)
def test_a_text_is_looked_for_in_what_a_person_reads(registry: Registry, wanted: str) -> None:
    registry.add(read(over_stdio(metadata={"place": "Straße", "größe": 1})))
    assert registry.search(wanted) == (["calendar"], False)


@pytest.mark.parametrize(
    "wanted", ["%", "_%", "c*r", "calendar.example", "zone=eu", "sample_mcp", "authorization", "nobody"]
)
def test_what_is_not_shown_or_not_there_is_not_found(registry: Registry, wanted: str) -> None:
    registry.add(read(over_http(tools=[a_tool(metadata={})])))
    assert registry.search(wanted) == ([], False)


def test_the_limit_counts_what_fits(registry: Registry) -> None:
    for number in range(6):
        registry.add(read(over_stdio(server_id=f"s{number}", metadata={"even": str(number % 2 == 0)})))
    assert registry.search('"even": "true"', 2) == (["s0", "s2"], True)
    assert registry.search('"even": "true"', 3) == (["s0", "s2", "s4"], False)


# What can no longer be used


DAMAGED = {
    "is not JSON": "{",
    "has an object with the same key twice": '{"a": 1, "a": 2}',
    "is not what its digest says": json.dumps(OTHER.data),
    "does not fit this version of the server: there is no `colour` in the manifest": json.dumps(
        {**ONE.data, "colour": 1}
    ),
}


@pytest.mark.parametrize("problem", DAMAGED)
def test_a_manifest_that_cannot_be_understood_makes_one_server_unusable(registry: Registry, problem: str) -> None:
    registry.add()
    registry.add(read(over_stdio(server_id="other")))
    registry.by_hand("UPDATE registrations SET manifest = :text WHERE server_id = 'calendar'", text=DAMAGED[problem])
    found = registry.known()
    assert (found.manifest, found.problem) == (None, problem)
    assert registry.search() == (["other"], False)
    with pytest.raises(RegistrationError, match="already"):
        registry.add()
    assert registry.replace(OTHER).problem is None
    assert registry.known().manifest == OTHER


MOMENTS = ("created_at", "updated_at")


@pytest.mark.parametrize("column", MOMENTS)
@pytest.mark.parametrize("value", [2**62, -(2**62)])
def test_a_moment_that_there_is_not_makes_one_server_unusable(registry: Registry, column: str, value: int) -> None:
    registry.add()
    registry.add(read(over_stdio(server_id="other")))
    registry.damage(column, value)
    found = registry.known()
    assert (found.manifest, found.problem) == (None, "cannot be read")
    assert registry.search() == (["other"], False)
    assert registry.replace(OTHER).problem is None
    assert registry.known().manifest == OTHER
    assert registry.known().generation == 2


@pytest.mark.parametrize("column", [*MOMENTS, "generation", "digest", "manifest"])
def test_a_value_of_another_kind_makes_one_server_unusable(tmp_path: Path, column: str) -> None:
    store = opened(str(tmp_path / "server.db"))
    try:
        registry = Registry(store)
        registry.add()
        registry.damage(column, literal_column("x'ff'"))
        found = registry.known()
        assert (found.manifest, found.problem) == (None, "cannot be read")
        assert registry.replace(OTHER).problem is None
        assert registry.known().manifest == OTHER
        assert registry.known().generation > 1
    finally:
        store.close()


def test_a_search_shows_nothing_that_may_not_be_seen(registry: Registry) -> None:
    for name in "abcd":
        registry.add(read(over_stdio(server_id=name)))

    def seen(limit: int, names: str) -> tuple[list[str], bool]:
        found, more = registry.store.read(
            lambda connection: registrations.search(connection, None, limit, seen=lambda name: name in names)
        )
        return [each.server_id for each in found], more

    assert seen(2, "bcd") == (["b", "c"], True)
    assert seen(2, "bd") == (["b", "d"], False)
    assert seen(1, "c") == (["c"], False)
    assert seen(4, "") == ([], False)


def test_what_cannot_be_understood_can_be_removed(registry: Registry) -> None:
    registry.add()
    registry.by_hand("UPDATE registrations SET manifest = 'x'")
    assert registry.remove().problem is None
    assert registry.stands(ABSENT_DIGEST, 2, True)


def test_a_variable_that_may_no_longer_be_named_makes_it_unusable(registry: Registry) -> None:
    registry.add(read(over_stdio(stdio={**STDIO, "env": {"TOKEN": "SAMPLE_MCP_TOKEN"}})))
    allowed = registry.find(readable=Readable(("SAMPLE_MCP_*",)))
    assert allowed is not None
    assert allowed.manifest is not None
    for readable in (Readable(("OTHER_*",)), Readable(("SAMPLE_MCP_*",), ("SAMPLE_MCP_TOKEN",))):
        found = registry.find(readable=readable)
        assert found is not None
        assert found.manifest is None
        assert str(found.problem).startswith("does not fit this version of the server: `TOKEN` must")


def test_a_manifest_is_read_once(registry: Registry) -> None:
    registry.add(read(over_http(http={**HTTP, "headers": {}})))
    assert registry.known().manifest is registry.known().manifest


# Any changes in any order


CHANGES = st.lists(
    st.tuples(st.sampled_from(["add", "replace", "remove", "confirm", "seed"]), st.sampled_from([ONE, OTHER, THIRD])),
    max_size=12,
)


@given(CHANGES)
@settings(max_examples=150, deadline=None)
def test_what_once_has_changed_never_stands_again(changes: list[tuple[str, Manifest]]) -> None:
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        for step in COMPONENT.steps:
            step(connection)
        seen = [(ABSENT_DIGEST, 0, False)]
        for name, manifest in changes:
            changed = _change(connection, name, manifest)
            standing = _standing(registrations.find(connection, "calendar"))
            before = seen[-1]
            if not changed:
                assert standing == before
            elif name == "confirm":
                assert standing == (before[0], before[1], False)
            else:
                assert standing[0] == (ABSENT_DIGEST if name == "remove" else manifest.digest)
                assert standing[1:] == (before[1] + 1, before[1] > 0)
            seen.append(standing)
            assert {one for one in seen if registrations.stands(connection, "calendar", *one)} == {standing}
    engine.dispose()


def _standing(found: Registration | None) -> tuple[str, int, bool]:
    return (ABSENT_DIGEST, 0, False) if found is None else (found.digest, found.generation, found.suspended)


def _change(connection: Connection, name: str, manifest: Manifest) -> bool:
    """Whether anything was changed."""
    changes: dict[str, Callable[[], object]] = {
        "add": lambda: registrations.add(connection, manifest, None, NOW),
        "replace": lambda: registrations.replace(connection, manifest, None, NOW),
        "remove": lambda: registrations.remove(connection, "calendar", None, NOW),
        "confirm": lambda: registrations.confirm(connection, "calendar", NOW),
        "seed": lambda: registrations.seed(connection, [manifest], NOW),
    }
    try:
        return bool(changes[name]())
    except RegistrationError:
        return False

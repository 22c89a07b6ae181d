"""Rules of backends that stand before upstream servers, and of the verbs that one of their tools runs."""

import re
from collections.abc import Iterator

from ..backends import GatewayBackend, McpBackend
from ..contract import package_of
from ..parse import Parsed, place
from ..pinned import tool_of
from ..problems import Problem, nearest, quoted
from ..source import Map
from ..spec import Verb
from ..support.manifest import ManifestError
from ..upstreams import manifest_of, named_manifests, upstream_backends
from .lookups import run_of

_PASSED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\*?")


def manifests_are_right(parsed: Parsed) -> Iterator[Problem]:
    for name, backend in upstream_backends(parsed):
        owners: dict[str, str] = {}
        for index, written in enumerate(named_manifests(backend)):
            step: tuple[int, ...] = (index,) if isinstance(backend, GatewayBackend) else ()
            mark = parsed.at("backends", name, "gateway" if step else "mcp", *step)
            try:
                manifest = manifest_of(parsed, backend, written, package_of(parsed))
            except ManifestError as error:
                yield from _in_manifest(error, parsed.manifests[written])
                continue
            if (other := owners.setdefault(manifest.server_id, written)) != written:
                yield Problem(mark, f"{quoted(manifest.server_id)} is the server of {quoted(other)} already")
            elif written in named_manifests(backend)[:index]:
                yield Problem(mark, f"{quoted(written)} stands in the list already")


def _in_manifest(error: ManifestError, manifest: Map) -> Iterator[Problem]:
    for problem in error.problems:
        # A server quotes names as Markdown does, a compiler as they stand in a spec.
        yield Problem(place(manifest, problem.path, key=False)[0], problem.text.replace("`", '"'))


def variables_are_names(parsed: Parsed) -> Iterator[Problem]:
    for name, backend in upstream_backends(parsed):
        for index, variable in enumerate(backend.env):
            if not _PASSED.fullmatch(variable):
                sentence = f"{quoted(variable)} must be a variable that a manifest may name, such as CAL_*"
                yield Problem(parsed.at("backends", name, "env", index), sentence)


def one_gateway_is_enough(parsed: Parsed) -> Iterator[Problem]:
    """The registry of servers is one, and so are the rights on them."""
    gateways = [name for name, backend in upstream_backends(parsed) if isinstance(backend, GatewayBackend)]
    for name in gateways[1:]:
        sentence = f"{quoted(gateways[0])} is the gateway already; a server has one"
        yield Problem(parsed.key_at("backends", name), sentence)
    if gateways and not (parsed.spec.access and parsed.spec.access.policy is not None):
        sentence = 'a gateway needs "access" with a "policy"; write `policy: {}` to begin with'
        yield Problem(parsed.key_at("backends", gateways[0]), sentence)


def tools_are_pinned(parsed: Parsed) -> Iterator[Problem]:
    for name, verb in parsed.spec.verbs.items():
        found = run_of(parsed, verb)
        backend = parsed.spec.backends[found[0]] if found else None
        if not found or not isinstance(backend, McpBackend):
            continue
        manifest, mark = parsed.manifests[backend.mcp], parsed.at("verbs", name, "run", found[0])
        tool = tool_of(manifest, found[1])
        if tool is None:
            tools = [str(other.get("tool_id")) for other in manifest.get("tools", ()) if isinstance(other, Map)]
            yield Problem(mark, f"there is no tool {quoted(found[1])}{nearest(found[1], tools)}")
            continue
        schema = tool.get("input_schema")
        if not isinstance(schema, Map) or not schema:
            yield Problem(mark, f"the tool {quoted(found[1])} has no input_schema to take the parameters from")
            continue
        yield from _unknown_parameters(parsed, name, verb, schema)


def _unknown_parameters(parsed: Parsed, name: str, verb: Verb, schema: Map) -> Iterator[Problem]:
    renamed = {str(own): parameter for parameter, own in verb.run.as_.items()} if verb.run else {}
    known = [renamed.get(own, own) for own in schema.get("properties", ())]
    for parameter in verb.params:
        if parameter not in known:
            sentence = f"the tool has no parameter {quoted(parameter)}{nearest(parameter, known)}"
            yield Problem(parsed.key_at("verbs", name, "params", parameter), sentence)

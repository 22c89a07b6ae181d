"""Rules of verbs and of what runs them."""

from collections.abc import Iterator

from ..access import Asked
from ..backends import CliBackend, JobsBackend, PythonBackend
from ..names import function_name
from ..parse import Parsed
from ..problems import Problem, listed, nearest, quoted
from ..spec import CONTENT, RUN_OPTIONS
from .lookups import commands, hook_methods, run_of, used_types


def verbs_are_whole(parsed: Parsed) -> Iterator[Problem]:
    for name, verb in parsed.spec.verbs.items():
        for key in ("summary", "run"):
            if getattr(verb, key) is None:
                yield Problem(parsed.key_at("verbs", name), f"the verb {quoted(name)} has no {quoted(key)}")


def verbs_have_one_backend(parsed: Parsed) -> Iterator[Problem]:
    backends = parsed.spec.backends
    for name, verb in parsed.spec.verbs.items():
        if verb.run is None:
            continue
        named = [target for target in verb.run.targets if target in backends]
        others = [target for target in verb.run.targets if target not in backends]
        for other in others:
            sentence = f"there is no backend or option {quoted(other)}{nearest(other, [*backends, *RUN_OPTIONS])}"
            yield Problem(parsed.key_at("verbs", name, "run", other), sentence)
        if len(named) > 1:
            sentence = f"`run` names more than one backend: {listed(named, 'and')}"
            yield Problem(parsed.key_at("verbs", name, "run", named[1]), sentence)
        elif named and not isinstance(verb.run.targets[named[0]], str):
            yield Problem(parsed.at("verbs", name, "run", named[0]), f"{quoted(named[0])} must be text")
        elif not named and not others:
            sentence = f"`run` names no backend; write {listed(backends)} with its target"
            yield Problem(parsed.key_at("verbs", name, "run"), sentence)


def uses_name_parts_once(parsed: Parsed) -> Iterator[Problem]:
    for name, verb in parsed.spec.verbs.items():
        for index, part in enumerate(verb.use):
            if part in verb.use[:index]:
                yield Problem(parsed.at("verbs", name, "use", index), f"{quoted(part)} stands in the list already")


def everything_is_used(parsed: Parsed) -> Iterator[Problem]:
    spec = parsed.spec
    backends = {name for verb in spec.verbs.values() if verb.run for name in verb.run.targets}
    backends |= {name for verb in spec.verbs.values() for name in verb.varies_with.values()}
    jobs = [backend for backend in spec.backends.values() if isinstance(backend, JobsBackend)]
    backends |= {name for backend in jobs for name in (backend.jobs, backend.hooks) if name}
    verify = spec.access.verify if spec.access else None
    backends |= set(verify.targets) if isinstance(verify, Asked) else set()
    parts = {name for verb in spec.verbs.values() for name in verb.use}
    for section, names, wanted in (
        ("backends", spec.backends, backends),
        ("shared", spec.shared, parts),
        ("types", spec.types, used_types(parsed)),
    ):
        for name in names:
            if name not in wanted:
                yield Problem(parsed.key_at(section, name), f"nothing uses {quoted(name)}; use it or take it out")
    for name, part in spec.shared.items():
        if part.use:
            yield Problem(
                parsed.key_at("shared", name, "use"), 'a shared part cannot "use" another; name both in the verb'
            )


def targets_fit_their_backend(parsed: Parsed) -> Iterator[Problem]:
    methods: dict[tuple[str, str], str] = {}
    hooks = hook_methods(parsed)
    for name, verb in parsed.spec.verbs.items():
        found = run_of(parsed, verb)
        if not found or not isinstance(parsed.spec.backends[found[0]], PythonBackend):
            continue
        backend, target = found
        mark = parsed.at("verbs", name, "run", backend)
        if not target.isidentifier() or function_name(target) != target or target.startswith("_"):
            yield Problem(mark, f"{quoted(target)} cannot be a method's name")
        elif target.startswith("params_for_"):
            yield Problem(mark, f"{quoted(target)} is the name of a method that `varies_with` calls; choose another")
        elif target in hooks:
            yield Problem(mark, f"{quoted(target)} is the name of a hook of {quoted(hooks[target])}; choose another")
        if (other := methods.setdefault((backend, target), name)) != name:
            yield Problem(mark, f"the method {quoted(target)} runs {quoted(other)} already; one method runs one verb")


def content_comes_from_python(parsed: Parsed) -> Iterator[Problem]:
    for name, verb in parsed.spec.verbs.items():
        found = run_of(parsed, verb)
        if verb.result == CONTENT and found and not isinstance(parsed.spec.backends[found[0]], PythonBackend):
            sentence = f"{quoted(CONTENT)} is what verbs of python backends can give"
            yield Problem(parsed.at("verbs", name, "result"), sentence)


def commands_are_words(parsed: Parsed) -> Iterator[Problem]:
    for command in commands(parsed):
        mark, target, words = command.target_at, command.target, command.target.split()
        if target != " ".join(words) or target.startswith("-"):
            sentence = f"the target {quoted(target)} must be words with one space between them, a command first"
            yield Problem(mark, sentence)
        elif "--" in words:
            yield Problem(mark, '"--" ends the options, so no flag could follow; take it out')
    for name, backend in parsed.spec.backends.items():
        for index, word in enumerate(backend.args if isinstance(backend, CliBackend) else ()):
            if word == "--":
                mark = parsed.at("backends", name, "args", index)
                yield Problem(mark, '"--" ends the options, so no flag could follow; take it out')


def commands_stay_outside_the_fence(parsed: Parsed) -> Iterator[Problem]:
    for command in commands(parsed):
        written = (*command.backend.cli.split()[1:], *command.target.split(), *command.args)
        words = [word for word in written if not word.startswith("-")]
        for fenced in command.backend.fenced:
            path = fenced.split()
            inside = words[: len(path)] == path
            reaches = path[: len(words)] == words and command.run.positional
            if inside or reaches:
                sentence = f"the verb {quoted(command.name)} reaches the fenced {quoted(fenced)}"
                yield Problem(command.target_at, sentence)


def synonyms_lead_somewhere(parsed: Parsed) -> Iterator[Problem]:
    synonyms, verbs = parsed.spec.synonyms, parsed.spec.verbs
    if synonyms.removed_after and not synonyms.verbs:
        yield Problem(parsed.key_at("synonyms", "removed_after"), '"removed_after" has no effect without synonyms')
    for synonym, verb in synonyms.verbs.items():
        if synonym in verbs:
            yield Problem(parsed.key_at("synonyms", "verbs", synonym), f"{quoted(synonym)} is a verb already")
        if verb not in verbs:
            yield Problem(
                parsed.at("synonyms", "verbs", synonym), f"there is no verb {quoted(verb)}{nearest(verb, verbs)}"
            )


def limits_have_an_effect(parsed: Parsed) -> Iterator[Problem]:
    def idle(backend: object, place: tuple[str, ...]) -> Iterator[Problem]:
        kind = "python" if isinstance(backend, PythonBackend) else "jobs" if isinstance(backend, JobsBackend) else None
        if kind:
            yield Problem(parsed.key_at(*place, "limits", "output"), f'"output" has no effect on a {kind} backend')

    for name, backend in parsed.spec.backends.items():
        if backend.limits.output is not None:
            yield from idle(backend, ("backends", name))
    for name, verb in parsed.spec.verbs.items():
        found = run_of(parsed, verb)
        if found and verb.limits.output is not None:
            yield from idle(parsed.spec.backends[found[0]], ("verbs", name))

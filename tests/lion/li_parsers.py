"""The argument parsers of an installed `li`, as JSON on stdout. Runs under the Python that lionagi is installed for.

`describe` prints `{"team send": [{"dest", "flags", "kind", "type", "choices", "default", "required", "nargs", "bare", "bounds"}, ...]}`,
an entry for each command that has no commands below it, under the first of its names. `parse` reads a JSON list of
command lines from stdin and prints what the parsers make of each. Nothing of `li` is run: whatever parser it hands
its words to first is the one that is looked at.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from typing import Any, NoReturn
from unittest.mock import patch


class Caught(BaseException):
    """Carries the parser out of a command line that is about to parse its words."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        super().__init__()
        self.parser = parser


def catch(parser: argparse.ArgumentParser, *_args: object, **_kwargs: object) -> NoReturn:
    raise Caught(parser)


def parser_for(words: list[str]) -> argparse.ArgumentParser:
    """The top parser that `li` makes for a command line: whole for the command that is asked for, empty for others."""
    from lionagi.cli.main import main as li  # type: ignore[import-not-found]

    with (
        patch.object(argparse.ArgumentParser, "parse_args", catch),
        patch.object(argparse.ArgumentParser, "parse_known_args", catch),
    ):
        try:
            li(words)
        except Caught as caught:
            return caught.parser
    sys.exit("li answered without parsing its words")


def commands_below(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return {word: child for action in below for word, child in action.choices.items()}


def leaves(parser: argparse.ArgumentParser, words: tuple[str, ...]) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Commands without commands below them; another name for the same command is passed over."""
    commands = commands_below(parser)
    if not commands:
        yield " ".join(words), parser
    firsts = {id(child): word for word, child in reversed(commands.items())}
    for word, child in commands.items():
        if firsts[id(child)] == word:
            yield from leaves(child, (*words, word))


def all_leaves() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    commands = commands_below(parser_for(["--help"]))
    firsts = {id(child): word for word, child in reversed(commands.items())}
    for word in firsts.values():
        parser = parser_for([word, "--help"])
        yield from leaves(commands_below(parser).get(word, parser), (word,))  # some commands parse for themselves


def described(action: argparse.Action) -> dict[str, Any]:
    default = action.default
    return {
        "dest": action.dest,
        "flags": list(action.option_strings),
        "kind": type(action).__name__,
        "type": getattr(action.type, "__name__", type(action.type).__name__) if action.type is not None else None,
        "choices": sorted(map(str, action.choices)) if action.choices is not None else None,
        "default": None if default is argparse.SUPPRESS else default,
        "required": action.required,
        "nargs": action.nargs,
        "bare": action.nargs == "?" and action.const is not None,
        "bounds": {key: getattr(action.type, key) for key in ("minimum", "maximum") if hasattr(action.type, key)},
    }


def describe() -> dict[str, list[dict[str, Any]]]:
    return {
        words: [described(action) for action in parser._actions if not isinstance(action, argparse._HelpAction)]
        for words, parser in all_leaves()
    }


def parse(command_lines: list[list[str]]) -> list[dict[str, Any]]:
    """What each command line comes to, `--machine` taken out as `li` does before it parses."""
    for words in command_lines:
        if "--machine" in words:
            words.remove("--machine")
    return [vars(parsed(words)) for words in command_lines]


def parsed(words: list[str]) -> argparse.Namespace:
    parser = parser_for(words)
    if any(action.nargs == "*" for action in parser._actions):  # flags may stand anywhere among these
        return parser.parse_intermixed_args(words[len(parser.prog.split()) - 1 :])
    own = words[0] not in commands_below(parser)  # some commands parse for themselves
    return parser.parse_args(words[1:] if own else words)


def main() -> None:
    answer = describe() if sys.argv[1:] == ["describe"] else parse(json.load(sys.stdin))
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        json.dump(answer, out, default=repr)


if __name__ == "__main__":
    main()

"""Wrong usage of the command line as one sentence: the wrong word, the verb, and the remedy."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from cyclopts import CycloptsError
from cyclopts.exceptions import MissingArgumentError, UnknownOptionError, UnusedCliTokensError

ALIKE = 0.7
"""Similarity from which a known word is suggested for a wrong one: `--store` is not suggested for `--node`."""


def sentence(misuse: CycloptsError) -> str:
    """The misuse as one line."""
    chain = list(misuse.command_chain or ())
    verb = " ".join(["treadle", *chain])
    return f"{_problem(misuse, verb)} (`{verb} --help` shows what it takes)"


def _problem(misuse: CycloptsError, verb: str) -> str:
    if isinstance(misuse, UnusedCliTokensError) and misuse.unused_tokens:
        word = misuse.unused_tokens[0]
        inner = [name for name in misuse.app or () if not name.startswith("-")]
        return f"there is no `{verb} {word}`{_near(word, inner)}" if inner else f"{verb} takes no {word!r}"
    if isinstance(misuse, UnknownOptionError):
        word = misuse.token.keyword or misuse.token.value
        known = [name for argument in misuse.argument_collection for name in argument.names]
        return f"{verb} has no option {word}{_near(word, known)}"
    if isinstance(misuse, MissingArgumentError) and misuse.argument is not None:
        used = misuse.keyword is not None or bool(misuse.argument.tokens)
        help = misuse.argument.parameter.help or ""
        name = misuse.argument.name
        return f"{name} needs a value: {help}" if used else f"{verb} needs {name}: {help}".rstrip(": ")
    text = " ".join(str(misuse).partition(" Available commands")[0].split()).rstrip(".")
    return f"{text[:1].lower()}{text[1:]}"


def _near(word: str, known: Iterable[str]) -> str:
    close = get_close_matches(word, list(known), n=1, cutoff=ALIKE)
    return f"; did you mean {close[0]}?" if close else ""

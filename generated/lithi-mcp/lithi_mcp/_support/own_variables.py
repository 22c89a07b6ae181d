"""The environment variables of a server itself, which no manifest may read."""

from __future__ import annotations


def operator_key_variable(package: str) -> str:
    """The one that gives the operator's commands his key; `package` is what Python imports the server as."""
    return f"{package.upper()}_OPERATOR_KEY"


def state_keys_variable(package: str) -> str:
    """The one with the keys that seal what clients carry."""
    return f"{package.upper()}_STATE_KEYS"


def store_variable(package: str) -> str:
    """The one with the address of the database."""
    return f"{package.upper()}_STORE"


def own_variables(package: str) -> tuple[str, ...]:
    """All of them."""
    return (operator_key_variable(package), state_keys_variable(package), store_variable(package))

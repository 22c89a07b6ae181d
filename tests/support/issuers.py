"""Whoever issues signed tokens: its keys, how it publishes them, and the tokens that it signs."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

ISSUER = "https://issuer.example"
AUDIENCE = "https://sample.example/mcp"


@cache
def _private_key(kind: str, serial: int) -> Any:
    """The key with this number, of a kind that a curve or a number of bits names; made once."""
    match kind:
        case "ed25519":
            return ed25519.Ed25519PrivateKey.generate()
        case "ed448":
            return ed448.Ed448PrivateKey.generate()
        case "1024" | "2048":
            return rsa.generate_private_key(65537, int(kind))
        case _:
            return ec.generate_private_key(getattr(ec, kind)())


@dataclass(frozen=True)
class SigningKey:
    """A key of an issuer, with what is published of it."""

    id: str | None
    algorithm: str
    kind: str
    published: dict[str, Any] = field(default_factory=dict)
    serial: int = 0

    @property
    def private(self) -> Any:
        """What it signs with."""
        return _private_key(self.kind, self.serial)

    @property
    def public(self) -> dict[str, Any]:
        """How it is published."""
        key = self.private.public_key()
        writer: Any = {"E": OKPAlgorithm, "S": ECAlgorithm}.get(self.kind[0].upper(), RSAAlgorithm)
        told = {} if self.id is None else {"kid": self.id}
        return {**json.loads(writer.to_jwk(key)), **told, "use": "sig", **self.published}

    def token(self, *, header: dict[str, Any] | None = None, **claims: Any) -> str:
        """A token that is good, as far as `claims` and `header` do not change it; what they have as None is left out."""
        whole = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "exp": int(time.time()) + 1000, **claims}
        told = {"kid": self.id, **(header or {})}
        return jwt.encode(
            {name: value for name, value in whole.items() if value is not None},
            self.private,
            self.algorithm,
            headers={name: value for name, value in told.items() if value is not None},
        )


P256 = SigningKey("p256", "ES256", "SECP256R1")
OTHER_P256 = SigningKey("other", "ES256", "SECP256R1", serial=1)
ALL = {
    "ES256": P256,
    "ES384": SigningKey("p384", "ES384", "SECP384R1"),
    "ES512": SigningKey("p521", "ES512", "SECP521R1"),
    "EdDSA": SigningKey("ed", "EdDSA", "ed25519"),
    "RS256": SigningKey("rsa", "RS256", "2048"),
    "RS384": SigningKey("rsa", "RS384", "2048"),
    "RS512": SigningKey("rsa", "RS512", "2048"),
    "PS256": SigningKey("rsa", "PS256", "2048"),
    "PS384": SigningKey("rsa", "PS384", "2048"),
    "PS512": SigningKey("rsa", "PS512", "2048"),
}


def key_set(*keys: SigningKey) -> dict[str, Any]:
    """What an issuer publishes."""
    return {"keys": [key.public for key in keys]}

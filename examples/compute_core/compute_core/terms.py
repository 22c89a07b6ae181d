"""Signing the terms of quotes with Ed25519, with a key that is made once for each file."""

import base64
import hashlib
from collections.abc import Callable
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from .canonical import canonical_json
from .store import Store


class Signer:
    """Signs; tells the public key by which anyone can check (a JWK, RFC 8037) and its id (its RFC 7638 thumbprint)."""

    def __init__(self, private: bytes) -> None:
        """`private` is the 32 bytes of an Ed25519 private key."""
        key = Ed25519PrivateKey.from_private_bytes(private)
        self._sign: Callable[[bytes], bytes] = key.sign
        public = {"crv": "Ed25519", "kty": "OKP", "x": _base64url(key.public_key().public_bytes_raw())}
        self.key_id = _base64url(hashlib.sha256(canonical_json(public)).digest())
        self.public_key: dict[str, str] = {**public, "alg": "EdDSA", "use": "sig", "kid": self.key_id}

    def signature(self, content: bytes) -> str:
        """The signature of `content`, in base64url without padding."""
        return _base64url(self._sign(content))

    def shown(self, signature: str) -> dict[str, Any]:
        """A signature as replies show it."""
        return {"alg": "EdDSA", "kid": self.key_id, "value": signature}


def signer_of(store: Store) -> Signer:
    """The signer of this file, with a new key if it has none."""
    made = Ed25519PrivateKey.generate().private_bytes_raw()
    with store.write() as db:
        db.execute("INSERT OR IGNORE INTO signing_keys VALUES (1, ?)", (made,))
        (private,) = db.execute("SELECT private FROM signing_keys").fetchone()
    return Signer(private)


def _base64url(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode("ascii")

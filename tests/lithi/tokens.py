"""An issuer of signed tokens: a key that is made when it is asked for, the set in which it is published, and its tokens."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm

ISSUER = "https://issuer.example"
AUDIENCE = "https://lithi.example/mcp"
ALGORITHM = "ES256"
SUBJECT = "ada"
ACCOUNT = "acct_0123456789ab"


class Issuer:
    """Signs with a key of its own, which is known as `id`."""

    def __init__(self, id_: str = "first") -> None:
        self.id = id_
        self._key: EllipticCurvePrivateKey = generate_private_key(SECP256R1())

    @property
    def published(self) -> dict[str, Any]:
        """The key as a JWK, without its private part."""
        return {
            **json.loads(ECAlgorithm.to_jwk(self._key.public_key())),
            "kid": self.id,
            "use": "sig",
            "alg": ALGORITHM,
        }

    @property
    def pem(self) -> bytes:
        return self._key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def token(self, header: dict[str, Any] | None = None, **changes: Any) -> str:
        """A good token, but for these claims, where None leaves one out, and for these members of its header."""
        return jwt.encode(claims(**changes), self._key, ALGORITHM, headers={"kid": self.id, **(header or {})})

    def forged(self, algorithm: str, secret: bytes = b"", **changes: Any) -> str:
        """A token that says another algorithm: `none`, or one that takes the secret."""
        told = {"alg": algorithm, "typ": "JWT", "kid": self.id}
        parts = ".".join(_encoded(json.dumps(part).encode()) for part in (told, claims(**changes)))
        signature = hmac.new(secret, parts.encode(), hashlib.sha256).digest() if secret else b""
        return f"{parts}.{_encoded(signature)}"


def claims(**changes: Any) -> dict[str, Any]:
    """What a good token says, changed; None leaves a claim out."""
    whole: dict[str, Any] = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": SUBJECT,
        "account": ACCOUNT,
        "scope": "compute:quote compute:run compute:read",
        "exp": int(time.time()) + 3600,
        **changes,
    }
    return {name: value for name, value in whole.items() if value is not None}


def key_set(*issuers: Issuer) -> dict[str, Any]:
    """What is published."""
    return {"keys": [issuer.published for issuer in issuers]}


def _encoded(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).rstrip(b"=").decode()

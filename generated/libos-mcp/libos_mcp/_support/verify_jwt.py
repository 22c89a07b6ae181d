"""Verifies keys that are signed tokens (JWT, RFC 7519), by the public keys of whoever issues them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from .bearer import Identity
from .identities import identity
from .published_keys import PublishedKeys

if TYPE_CHECKING:
    from jwt import PyJWK

# Those whose keys can be published: with any other, whoever reads the keys could sign.
ALGORITHMS: Final = frozenset(
    {"ES256", "ES384", "ES512", "EdDSA", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512"}
)


@dataclass(frozen=True, slots=True)
class JwtSettings:
    """Where the keys are published, which tokens are taken, and what they call the parts of an identity."""

    url: str
    algorithms: tuple[str, ...]
    issuer: str
    audience: str
    subject: str = "sub"
    account: str | None = None
    scopes: str = "scope"


class JwtVerifier:
    """Takes tokens for this audience that this issuer has signed and that have not expired.

    Raises ValueError for an algorithm that is not one of ALGORITHMS, and for none.
    """

    def __init__(self, settings: JwtSettings) -> None:
        if not settings.algorithms or not ALGORITHMS.issuperset(settings.algorithms):
            raise ValueError("Tokens can only be verified by algorithms with public keys.")
        self._settings = settings
        self._keys = PublishedKeys(settings.url, settings.algorithms)
        with suppress(ImportError):  # where it was not installed, no key can be verified, as each of them tells
            import_module("jwt")  # now, as it takes longer than callers should have to wait

    async def verify(self, key: str) -> Identity | None:
        """Whom a token stands for. Raises VerifierError when the keys to check it with cannot be read."""
        header = _header(key)
        algorithm = header.get("alg")
        if not isinstance(algorithm, str) or algorithm not in self._settings.algorithms:
            return None
        published = await self._keys.find(header.get("kid"), algorithm)
        return None if published is None else self._identity(key, published)

    async def close(self) -> None:
        """Close the connections."""
        await self._keys.close()

    def _identity(self, token: str, published: PyJWK) -> Identity | None:
        import jwt

        settings = self._settings
        try:
            claims = jwt.decode(
                token,
                published,
                algorithms=[published.algorithm_name],
                issuer=settings.issuer,
                audience=settings.audience,
                # When it was issued says nothing about whether it is good, and clocks differ.
                options={"require": ["exp", "iss", "aud"], "verify_iat": False, "enforce_minimum_key_length": True},
            )
            return identity(
                subject=claims.get(settings.subject),
                account=None if settings.account is None else claims.get(settings.account),
                scopes=claims.get(settings.scopes),
                expires=claims["exp"],
            )
        except (jwt.PyJWTError, ValueError, TypeError):
            return None  # whatever is wrong with a token, it is not a good one


def _header(token: str) -> Mapping[str, Any]:
    """What a token says of itself, unproven; nothing where it is no token."""
    import jwt

    try:
        return jwt.get_unverified_header(token)
    except (jwt.PyJWTError, ValueError, TypeError):
        return {}

"""Access control: tokens with roles, and the hosts and origins of requests.

Without tokens, anyone who can reach the server has all rights, so it listens on
loopback only. A page of another site, open in a browser on the same machine, can reach
it too: hence requests must name a host of the server, and if they have an origin, it
must be the same.
"""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass, field
from enum import IntEnum
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evermat.server.errors import ForbiddenError, ServerSetupError, UnknownTokenError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Role(IntEnum):
    """The rights of a token; each role includes those before it."""

    PUBLIC = 0
    READ = 1
    WRITE = 2
    ADMIN = 3


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1)
    role: str = Field(pattern="^(read|write|admin)$")
    token: str | None = Field(default=None, min_length=16)
    sha256: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    tokens: list[_Entry] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class Access:
    """The access rules of a server.

    Attributes:
        roles: the name and role of each token, by its SHA-256; None if no token is
            required.
        hosts: the names of the server; empty if any will do.
    """

    roles: Mapping[str, tuple[str, Role]] | None = None
    hosts: frozenset[str] = field(default_factory=frozenset)

    def role_of(self, authorization: str | None) -> Role:
        """Return the role of a request.

        Raises:
            UnknownTokenError: it has an unknown token.
        """
        if self.roles is None:
            return Role.ADMIN
        if authorization is None:
            return Role.PUBLIC
        kind, _, token = authorization.partition(" ")
        known = self.roles.get(digest_of(token.strip()))
        if kind.lower() != "bearer" or known is None:
            raise UnknownTokenError(
                "the token is not known to this server",
                help="send `Authorization: Bearer TOKEN` with one that its "
                "administrator has given you",
            )
        return known[1]

    def require(self, role: Role, needed: Role) -> None:
        """Reject a request whose role is insufficient."""
        if role >= needed:
            return
        if role == Role.PUBLIC:
            raise UnknownTokenError(
                "this needs a token",
                help="send `Authorization: Bearer TOKEN`",
            )
        raise ForbiddenError(
            f"this needs the role `{needed.name.lower()}`, and the token has the role "
            f"`{role.name.lower()}`",
            help="use another token",
        )

    def require_own_site(self, host: str | None, origin: str | None) -> None:
        """Reject requests that a page of another site sends from a browser."""
        name = _name_of(f"//{host or ''}")
        if self.hosts and name not in self.hosts:
            raise ForbiddenError(
                f"this server is not called `{name}`",
                help="use the address that it was started with, or name others with "
                "--host-name",
            )
        if origin is not None and urlsplit(origin).netloc != host:
            raise ForbiddenError(
                f"a page of `{origin}` must not use this server",
                help="send requests from programs, or from the console",
            )


def _name_of(address: str) -> str:
    try:
        return (urlsplit(address).hostname or "").lower()
    except ValueError:
        return ""


def digest_of(token: str) -> str:
    """Return the digest of a token, from which it cannot be recovered."""
    return hashlib.sha256(token.encode()).hexdigest()


def is_loopback(host: str) -> bool:
    """Return whether an address can only be reached from this machine."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def access_for(host: str, names: frozenset[str], tokens: Path | None) -> Access:
    """Return the access rules of a server.

    Args:
        host: the address that it listens on.
        names: other names of the server.
        tokens: a TOML file of tokens: `[[tokens]]` with `name`, `role`, and `token` or
            `sha256`.

    Raises:
        ServerSetupError: the file is invalid, or everyone would have all rights.
    """
    if tokens is None:
        if not is_loopback(host):
            raise ServerSetupError(
                f"whoever reaches `{host}` could change everything",
                reason="a server that others can reach needs tokens",
                help="name a file of tokens with --tokens, or listen on 127.0.0.1",
            )
        local = frozenset({"localhost", "127.0.0.1", "::1", host.lower()})
        return Access(None, local | names)
    return Access(_read_tokens(tokens), names)


def _read_tokens(path: Path) -> dict[str, tuple[str, Role]]:
    try:
        found = _File.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise ServerSetupError(
            f"cannot read `{path}`: {(error.strerror or str(error)).lower()}"
        ) from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ServerSetupError(f"`{path}` is not TOML: {error}") from error
    except ValidationError as error:
        # Not the value itself, which might be part of a token.
        places = (".".join(map(str, each["loc"])) for each in error.errors())
        raise ServerSetupError(
            f"`{path}` does not hold tokens; look at {', '.join(places)}",
            help='write [[tokens]] with name = "…", role = "read", "write" or "admin", '
            "and token (16 characters at least) or sha256",
        ) from None
    roles = {}
    for each in found.tokens:
        if (each.token is None) == (each.sha256 is None):
            raise ServerSetupError(
                f"the token `{each.name}` needs either `token` or `sha256`"
            )
        digest = each.sha256 or digest_of(each.token or "")
        roles[digest] = (each.name, Role[each.role.upper()])
    return roles

"""Addresses of files and databases, and how messages and records name them: without secrets."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote

_REMOTE = (
    "s3://",
    "s3a://",
    "gs://",
    "gcs://",
    "r2://",
    "az://",
    "abfss://",
    "https://",
    "http://",
)
_LOCAL = ("file", "duckdb", "sqlite")
_ADDRESS = re.compile(r"\w+://[^\s\"'<>|]+")
_QUOTED = re.compile(r"""(?<!\w)(["'])(.+?)\1(?!\w)""")


def is_remote(text: str) -> bool:
    """Whether it is the URL of files."""
    return text.lower().startswith(_REMOTE)


def local_path(text: str) -> str:
    """The path that a URL names a file of this machine by; any other text as it is.

    Examples
    --------
    >>> local_path("file:///data/a%20b.parquet"), local_path("duckdb://people.duckdb")
    ('/data/a b.parquet', 'people.duckdb')
    """
    scheme, mark, rest = text.partition("://")
    if not mark or scheme.lower() not in _LOCAL:
        return text
    if scheme.lower() != "file":
        return rest
    path = unquote(rest.removeprefix("localhost"))
    if not path.startswith("/"):
        raise ValueError(
            f"A URL of a file must hold its whole path, as file:///data/people.parquet, got {text}."
        )
    return path


def without_secrets(text: str) -> str:
    """A URL without user name, password and parameters; any other text as it is.

    A password may hold marks that a URL should not have. Where it cannot be told where it ends,
    only the kind of the address is left.

    Examples
    --------
    >>> without_secrets("postgres://me:secret@host/base?sslmode=require")
    'postgres://host/base?...'
    >>> without_secrets("https://host/people.parquet?X-Amz-Signature=0f3c")
    'https://host/people.parquet?...'
    """
    scheme, mark, rest = text.partition("://")
    if not mark:
        return text
    place, *parameters = re.split(r"[?#]", rest, maxsplit=1)
    if any("@" in one for one in parameters):
        return f"{scheme}://..."
    host = place.split("/")[0]
    if not (is_remote(text) and re.fullmatch(r"[^:@]*(:\d*)?", host)):  # else @ is of a file's name
        place = place.rpartition("@")[2]
    return f"{scheme}://{place}" + ("?..." if parameters else "")


def said_without_secrets(said: str, addresses: Iterable[str]) -> str:
    """What an engine said of addresses, without what they hide.

    Examples
    --------
    >>> said_without_secrets("No port 'a' in db://me:a/b@host", ["db://me:a/b@host"])
    "No port '...' in db://host"
    """
    hiding = [text for text in addresses if has_secrets(text)]
    for text in hiding:
        said = said.replace(text, without_secrets(text))

    def quoted(found: re.Match[str]) -> str:
        sign, inner = found.groups()
        hides = any(inner in text and inner not in _parts(text) for text in hiding)
        return f"{sign}...{sign}" if hides else found[0]

    return _ADDRESS.sub(lambda found: without_secrets(found[0]), _QUOTED.sub(quoted, said))


def _parts(text: str) -> list[str]:
    """What is shown of an address, piece by piece."""
    return re.split(r"[:/?]+", without_secrets(text))


def has_secrets(text: str) -> bool:
    """Whether a URL has a user name, a password or parameters.

    Examples
    --------
    >>> has_secrets("https://me@host/people.parquet"), has_secrets("people.parquet")
    (True, False)
    """
    return without_secrets(text) != text

"""What is kept on disk: whole or not at all, checked when it is read, and never executed."""

from apfex.storage._bundle import Bundle, read_bundle, write_bundle
from apfex.storage._files import write_bytes_atomically, write_text_atomically
from apfex.storage._json import read_json, write_json
from apfex.storage._values import pack, unpack

__all__ = [
    "Bundle",
    "pack",
    "read_bundle",
    "read_json",
    "unpack",
    "write_bundle",
    "write_bytes_atomically",
    "write_json",
    "write_text_atomically",
]

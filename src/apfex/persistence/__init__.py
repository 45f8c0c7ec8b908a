"""What is kept on disk: whole or not at all, checked when it is read, and never executed.

Files and folders come first; :func:`save_model` and :func:`load_model` store a fitted record, and
:func:`export_onnx` writes a point of its front for other programs.
"""

from apfex.persistence._bundle import Bundle, read_bundle, write_bundle
from apfex.persistence._checkpoint import (
    SEED,
    CheckpointError,
    FolderCheckpoint,
    open_checkpoint,
    read_checkpoint,
    remove_checkpoint,
    shared,
)
from apfex.persistence._drafts import beside, clean_up, new_draft
from apfex.persistence._files import new_file, write_bytes_atomically, write_text_atomically
from apfex.persistence._json import read_bytes, read_json, write_json
from apfex.persistence._load import CorruptModelError, load_model
from apfex.persistence._onnx import export_onnx
from apfex.persistence._save import StoredModel, save_model, versions
from apfex.persistence._values import NotStored, pack, pack_arguments, unpack

__all__ = ["CheckpointError", "CorruptModelError"]

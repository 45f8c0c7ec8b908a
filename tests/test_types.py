"""Every public name has a complete type, so that editors and type checkers help."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

STUBS = """
from typing import Any, Self

class BaseEstimator:
    def get_params(self, deep: bool = ...) -> dict[str, Any]: ...
    def set_params(self, **params: Any) -> Self: ...

class ClassifierMixin: ...
class TransformerMixin: ...
"""


@pytest.mark.slow
def test_public_names_have_complete_types(tmp_path):
    """With the types of two base classes, of which scikit-learn itself ships none.

    Without them pyright calls ``APFExClassifier``, ``TableEncoder`` and what mentions them
    partially unknown; editors bring such stubs along.
    """
    stubs = tmp_path / "sklearn-stubs"
    stubs.mkdir()
    (stubs / "py.typed").write_text("partial\n")
    (stubs / "__init__.pyi").touch()
    (stubs / "base.pyi").write_text(STUBS)
    command = [sys.executable, "-m", "pyright", "--outputjson"]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # of the Python to ask
    found = subprocess.run(
        [*command, "--verifytypes", "apfex", "--ignoreexternal"],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    report = json.loads(found.stdout[found.stdout.index("{") :])["typeCompleteness"]
    unknown = {
        symbol["name"]: [one["message"] for one in symbol["diagnostics"]]
        for symbol in report["symbols"]
        if symbol["diagnostics"]
    }
    assert not unknown
    assert report["completenessScore"] == 1
    assert report["exportedSymbolCounts"]["withKnownType"] > 200

"""An extra that is not installed is named in one line, whatever needs it."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
NEEDS = {
    "dask": ("distributed", "use_backend('dask').__enter__()"),
    "excel": ("openpyxl", "audit_file(folder + '/t.xlsx', prediction='a', sensitive='b')"),
    "images": ("PIL", "load_images(folder)"),
    "mlflow": ("mlflow", "log_to_mlflow(found)"),
    "onnx": ("onnx", "clf.to_onnx(folder + '/point.onnx')"),
    "plot": ("matplotlib.pyplot", "found.plot()"),
    "plotly": ("plotly.graph_objects", "clf.front_.to_plotly()"),
    "ray": ("ray", "use_backend('ray').__enter__()"),
    "skops": ("skops.io", "of_skops.save(folder + '/model')"),
    "spark": ("pyspark", "load_run(sys.argv[2]).udf().to_spark(None)"),
    "tensorboard": ("tensorboard", "TensorBoardLog(folder)"),
}
"""What is hidden, and what then needs it."""
CODE = """
import json, sys, warnings
warnings.simplefilter("ignore")
folder, needs = sys.argv[1], json.loads(sys.argv[3])
for module, _ in needs.values():
    sys.modules[module] = None
from sklearn.linear_model import LogisticRegression
from apfex import APFExClassifier, audit, make_biased
from apfex.clusters import use_backend
from apfex.datasets import load_images
from apfex.integrations import TensorBoardLog, log_to_mlflow
from apfex.runs import audit_file, load_run
open(folder + "/t.xlsx", "wb").write(b"PK")
data = make_biased(300, random_state=0)
given = {"sensitive_features": data.sensitive}
of = dict(epochs=2, max_gap=1.0, random_state=0)
clf = APFExClassifier(model="linear", search="inprocess", **of).fit(data.X, data.y, **given)
of_skops = APFExClassifier(model=LogisticRegression(), **of).fit(data.X, data.y, **given)
found = audit(data.y, clf.predict(data.X), **given)
said = {}
for extra, (_, call) in needs.items():
    try:
        eval(call)
    except Exception as error:
        said[extra] = [type(error).__name__, str(error)]
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def said(finished, tmp_path_factory):
    folder = tmp_path_factory.mktemp("extras")
    command = [sys.executable, "-c", CODE, str(folder), str(finished), json.dumps(NEEDS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.parametrize("extra", NEEDS)
def test_one_line_names_the_extra(extra, said):
    kind, message = said[extra]
    assert kind in ("ImportError", "RunError")
    assert f"needs the package {NEEDS[extra][0].partition('.')[0]}" in message.replace(
        "pillow", "PIL"
    )
    assert f'pip install "apfex[{extra}]"' in message
    assert "\n" not in message


def test_every_extra_is_in_the_table():
    if not PROJECT.exists():
        pytest.skip("the package was installed without its pyproject.toml")
    extras = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"]
    assert set(extras) - {"bench", "dev", "docs"} == set(NEEDS)


def test_documents_name_extras_that_are_there():
    pages = [PROJECT.parent / "README.md", *(PROJECT.parent / "docs").glob("*.md")]
    named = {name for page in pages for name in re.findall(r"apfex\[(\w+)\]", page.read_text())}
    assert named <= set(NEEDS)

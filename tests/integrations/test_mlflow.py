"""MLflow: a real tracking store in a folder, and models read back by its own loader."""

import os
import subprocess
import sys
from typing import Any

import pandas as pd
import pytest
from tests.people import people

import apfex
from apfex import APFExClassifier, audit, make_biased
from apfex.history import History
from apfex.integrations import log_mlflow_model, log_to_mlflow, save_mlflow_model
from apfex.runs import audit_file, load_run

mlflow = pytest.importorskip("mlflow", reason="the extra mlflow is not installed")
DATA = make_biased(400, random_state=0)
# MLflow and SQLAlchemy warn of each other
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A SQLite store of its own, as is MLflow's default; its tables take seconds to make."""
    folder = tmp_path_factory.mktemp("mlflow")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        mlflow.set_tracking_uri(f"sqlite:///{folder / 'mlflow.db'}")
        mlflow.create_experiment("apfex", artifact_location=(folder / "artifacts").as_uri())
        mlflow.set_experiment("apfex")
        yield mlflow.MlflowClient()


@pytest.fixture(scope="module")
def clf():
    made = APFExClassifier(model="linear", epochs=3, max_gap=1.0, random_state=0)
    return made.fit(DATA.X, DATA.y, sensitive_features=DATA.sensitive)


def artifacts(store, run_id, folder="apfex"):
    return {one.path.removeprefix(f"{folder}/") for one in store.list_artifacts(run_id, folder)}


@pytest.mark.slow
def test_a_run_has_settings_figures_pages_and_its_model(store, finished):
    run = load_run(finished)
    run_id = log_to_mlflow(run)
    logged = store.get_run(run_id)
    assert logged.info.status == "FINISHED"
    assert logged.data.params["label"] == "hired"
    assert logged.data.params["seed"] == "0"
    chosen = run.described["points"][run.described["chosen"]]
    assert logged.data.metrics["error"] == chosen["error"]
    for gap in chosen["gaps"]:
        assert logged.data.metrics[f"dp_gap/{gap['by']}"] == gap["gap"]
        assert logged.data.metrics[f"dp_gap_upper/{gap['by']}"] == gap["upper"]
    front = store.get_metric_history(run_id, "front/error")
    assert [m.value for m in sorted(front, key=lambda m: m.step)] == [
        point["error"] for point in run.described["points"]
    ]
    assert logged.data.tags["apfex.conclusion"] == run.conclusion.code
    assert logged.data.tags["apfex.data_sha256"] == run.record["data"]["sha256"]
    pages = {"report.html", "front.json", "audit.json", "run.json", "model_card.md", "audit.md"}
    assert artifacts(store, run_id) == pages
    losses = [name for name in logged.data.metrics if name.startswith("training/")]
    assert any(name.endswith("loss/error") for name in losses)
    assert all("member_" in name for name in losses)


@pytest.mark.slow
@pytest.mark.usefixtures("store")
def test_its_model_decides_as_the_run_and_holds_no_pickle(finished):
    run = load_run(finished)
    with mlflow.start_run():
        info = log_mlflow_model(run, registered_model_name="hiring")
    rows = people(40, seed=1)
    loaded = mlflow.pyfunc.load_model("models:/hiring/1")
    wanted = run.predict(rows)
    pd.testing.assert_frame_equal(loaded.predict(rows[list(run.record["features"])]), wanted)
    at_first = loaded.predict(rows[list(run.record["features"])], params={"point": 0})
    pd.testing.assert_frame_equal(at_first, run.predict(rows, point=0))
    local = mlflow.artifacts.download_artifacts(info.model_uri)
    names = [name for _, _, files in os.walk(local) for name in files]
    assert not [name for name in names if name.endswith((".pkl", ".pickle", ".joblib"))]


@pytest.mark.slow
@pytest.mark.usefixtures("store")
def test_rows_with_missing_values_are_taken(finished):
    run = load_run(finished)
    with mlflow.start_run():
        info = log_mlflow_model(run)
    rows = people(20, seed=1)[list(run.record["features"])]
    rows.loc[0, "town"] = None
    rows.loc[1, "merit_1"] = None
    loaded = mlflow.pyfunc.load_model(info.model_uri)
    pd.testing.assert_frame_equal(loaded.predict(rows), run.predict(rows))


def test_a_model_folder_is_read_without_a_store(clf, tmp_path):
    folder = save_mlflow_model(clf, tmp_path / "served")
    loaded = mlflow.pyfunc.load_model(str(folder))
    assert loaded.predict(DATA.X).tolist() == clf.predict(DATA.X).tolist()
    last = len(clf.front_) - 1
    found = loaded.predict(DATA.X, params={"point": last})
    assert found.tolist() == clf.at(last).predict(DATA.X).tolist() != clf.predict(DATA.X).tolist()
    assert loaded.metadata.get_model_info().flavors["python_function"]["loader_module"] == (
        "apfex.integrations._mlflow_model"  # models in registries name it: it cannot move
    )
    with pytest.raises(FileExistsError, match="name another folder"):
        save_mlflow_model(clf, folder)


@pytest.mark.slow
def test_a_model_folder_serves_in_another_process(clf, tmp_path):
    folder = save_mlflow_model(clf, tmp_path / "served")
    DATA.X.to_parquet(tmp_path / "x.parquet")
    code = (
        "import sys, mlflow.pyfunc, pandas as pd; model = mlflow.pyfunc.load_model(sys.argv[1]); "
        "print(model.predict(pd.read_parquet(sys.argv[2])).tolist())"
    )
    command = [sys.executable, "-W", "ignore", "-c", code, folder, tmp_path / "x.parquet"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.splitlines()[-1] == str(clf.predict(DATA.X).tolist())


@pytest.mark.slow
def test_it_logs_into_the_run_that_is_active(store, clf):
    with mlflow.start_run() as active:
        assert log_to_mlflow(clf, model=False) == active.info.run_id
        mlflow.log_metric("mine", 1.0)
    metrics = store.get_run(active.info.run_id).data.metrics
    point = clf.front_[clf.point_]
    assert metrics["error"] == point.error
    assert metrics["dp_gap"] == point.gaps["dp"].gap
    assert metrics["mine"] == 1.0
    assert len(store.get_metric_history(active.info.run_id, "front/loss")) == len(clf.front_)


@pytest.mark.slow
def test_an_audit_and_its_verdict(store):
    frame = people()
    run = audit_file(frame, prediction="hired", positive="hired", sensitive="sex,origin")
    logged = store.get_run(log_to_mlflow(run))
    assert logged.data.tags["apfex.verdict"] == run.audit.summary.verdict
    assert logged.data.params["prediction"] == "hired"
    assert artifacts(store, logged.info.run_id) >= {"audit.json", "report.html", "audit.md"}
    plain = store.get_run(log_to_mlflow(run.audit)).data
    assert plain.metrics == logged.data.metrics


@pytest.mark.slow
def test_names_and_values_that_mlflow_refuses(store):
    groups = {"a|b": ["x", "y"] * 60, "a?b": ["x", "x", "y"] * 40}
    found = audit([0, 1, 1] * 40, [0, 1] * 60, sensitive_features=groups, min_count=500)
    assert (
        found.gaps["gap"].isna().to_numpy().all()
    )  # nothing can be estimated, so nothing is logged
    metrics = store.get_run(log_to_mlflow(found)).data.metrics
    assert set(metrics) == {"share_favored"}
    known = audit([0, 1, 1] * 40, [0, 1] * 60, sensitive_features=groups)
    metrics = store.get_run(log_to_mlflow(known)).data.metrics
    assert len(metrics) == 1 + 3 * len(known.gaps)
    assert {"dp_gap/a_b", "dp_gap/a_b_2"} <= set(metrics)  # both are there


@pytest.mark.slow
def test_a_history_is_a_series(store):
    history: Any = loop().history
    run_id = log_to_mlflow(history)
    values = store.get_metric_history(run_id, "training/loss/0")
    assert [m.step for m in values] == [0, 2, 4]
    assert [m.value for m in values] == pytest.approx(history.losses[:, 0].tolist())


def test_anything_else_is_refused():
    with pytest.raises(TypeError, match="what must be a Run, an AuditRun, an Audit, a fitted"):
        log_to_mlflow("run")
    with pytest.raises(TypeError, match="what must be a Run or a fitted APFExClassifier, got str"):
        log_mlflow_model("run")  # type: ignore[arg-type]


def loop(steps: int = 6) -> apfex.APFEx:
    import torch

    theta = torch.nn.Parameter(torch.zeros(1))
    optimizer = apfex.APFEx(torch.optim.SGD([theta], lr=0.1), window=2)
    for _ in range(steps):
        optimizer.backward([(theta - 1).square().sum(), (theta + 1).square().sum()])
        optimizer.step()
    assert isinstance(optimizer.history, History)
    return optimizer

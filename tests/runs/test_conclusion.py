"""What a run came to is said first, and alike in terminal, record and description."""

import json
from typing import Any

import numpy as np
import pytest
from tests.people import COLUMNS, TRAINING, people

from apfex import explore
from apfex.persistence import read_json
from apfex.runs import load_run
from apfex.runs._conclusion import conclude
from apfex.runs._settings import ExploreSettings


def settings(**changes):
    given = {
        "source": None,
        "label": "hired",
        "positive": None,
        "sensitive": "sex",
        "bins": None,
        "weight": None,
        "criteria": "dp",
        "tolerance": 0.05,
        "confidence": 0.95,
        "encoding": None,
        "favorable": None,
        "drop": None,
        "max_gap": None,
        "max_error_increase": None,
        "scoring": "accuracy",
        "cost": None,
        "class_weight": None,
        "selection_rate": None,
        "include_sensitive": False,
        "group_thresholds": False,
        "model": "mlp",
        "search": "auto",
        "strategy": ("switch",),
        "points": 16,
        "seed": 0,
        "threads": None,
        "test_fraction": 0.25,
        "sheet": None,
        "stream": None,
    }
    return ExploreSettings(**given | changes)


class Known:
    """A point of a front, as far as it is looked at here."""

    def __init__(self, loss, constant, best, trivial=False):
        self.loss, self.gain, self.gaps = (
            loss,
            constant - loss,
            dict.fromkeys(("dp", "tpr", "fpr"), Gap()),
        )
        self.near_constant = trivial or not self.gain >= 0.5 * (constant - best) > 0


class Gap:
    gap = 0.03


class Front(list):
    by, constant_error = "error", 0.4


def made(*errors, chosen=0, chosen_by="bounds", trivial=False) -> tuple[Any, Any]:
    """A front with these errors, of rows of which 60% have one label, and its description."""
    front: Any = Front(Known(error, 0.4, min(errors), trivial) for error in errors)
    found = {"constant": {"label": "no", "error": 0.4}, "chosen": chosen, "chosen_by": chosen_by}
    found["points"] = [{"summary": {"headline": "All is well."}} for _ in errors]
    return found | {"trivial": all(point.near_constant for point in front)}, front


def test_a_model_that_meets_the_limit_is_chosen():
    found = conclude(*made(0.2, 0.3), settings())
    assert (found.code, found.is_usable) == ("chosen", True)
    assert found.text.startswith("Point 0 is chosen: of the models that meet your limit (dp gap")
    assert "nearly constant" not in found.text


def test_a_nearly_constant_model_is_not_handed_out_without_a_word():
    found = conclude(*made(0.2, 0.35, chosen=1), settings())
    assert "Point 1 is chosen" in found.text
    assert "little better than the same answer for everyone." in found.text


def test_where_no_model_meets_the_limit_it_is_said_so():
    found = conclude(*made(0.2, chosen_by="nearest"), settings(max_error_increase=0.02))
    assert (found.code, found.is_usable) == ("limit_not_met", True)
    assert found.text == (
        "No model meets your limit (dp gap at most 0.05, error at most 0.02 above the lowest) on "
        "the validation rows; this one comes closest: point 0 (dp gap 0.030 there). On the test "
        "rows: All is well."
    )


@pytest.mark.parametrize(
    ("points", "trivial"), [((0.4,), True), ((0.4, 0.41), False), ((0.39,), True)]
)
def test_where_all_models_are_constant_none_is_chosen_and_the_remedies_are_named(points, trivial):
    found = conclude(*made(*points, trivial=trivial), settings())
    assert (found.code, found.is_usable) == ("no_usable_model", False)
    assert found.text.startswith("No usable model: ")
    assert "which is wrong for 40.0% of the test rows" in found.text
    for remedy in ("--scoring balanced_accuracy", "--cost false_", "--selection-rate 0.2"):
        assert remedy in found.text
    tried = conclude(*made(*points, trivial=trivial), settings(scoring="balanced_accuracy"))
    assert "--scoring" not in tried.text


@pytest.fixture(scope="module")
def rare(tmp_path_factory):
    """A table whose positive label is so rare that only constant models are found."""
    rng = np.random.default_rng(0)
    frame = people(600)
    frame["hired"] = np.where(rng.random(600) < 0.02, "hired", "rejected")
    path = tmp_path_factory.mktemp("rare") / "rare.csv"
    frame.to_csv(path, index=False)
    with pytest.warns(UserWarning, match="No model was found that is better"):
        run = explore(path, **COLUMNS, **TRAINING, out=path.with_name("run"))
    return path, run


def test_a_trivial_front_is_no_success_and_everything_says_the_same(rare, capsys, tmp_path):
    from apfex.cli import main

    path, run = rare
    assert run.conclusion.code == "no_usable_model"
    stored = load_run(run.folder)
    assert stored.conclusion == run.conclusion
    assert stored.record["conclusion"] == run.conclusion.to_dict()
    columns = [word for name, value in (COLUMNS | TRAINING).items() for word in (name, value)]
    words = [f"--{word}" if place % 2 == 0 else str(word) for place, word in enumerate(columns)]
    code = main(["explore", str(path), *words, "--out", str(tmp_path / "run")])
    printed = capsys.readouterr()
    assert code == 1
    _, _, after = printed.out.partition("to test\n")
    assert after.strip().splitlines()[0] == run.conclusion.text
    assert "chosen" not in printed.out
    assert "apfex predict" not in printed.out
    assert "“rejected” for everyone" in printed.out
    assert (tmp_path / "run" / "report.html").exists()


def test_who_predicts_with_such_a_run_is_warned(rare):
    path, run = rare
    with pytest.warns(UserWarning, match="No usable model"):
        run.predict(path)


def test_the_page_is_handed_what_the_run_is(finished, table):
    run = load_run(finished)
    told, record = run.described["run"], read_json(finished / "run.json")
    assert told["date"] == record["created"]
    assert told["date"].endswith("+00:00")
    assert told["data"]["sha256"] == record["data"]["sha256"]
    assert (told["data"]["rows"], told["data"]["test_rows"]) == (300, 75)
    assert (told["model"], told["seed"]) == ("linear", 0)
    assert told["versions"] == record["versions"]
    assert told["features"]["town"] == "text"
    assert str(table.parent) not in json.dumps(told)


@pytest.mark.parametrize("chosen_by", ["bounds", "nearest"])
def test_what_criteria_without_a_limit_are_judged_by_is_said(chosen_by):
    given = {"criteria": "dp,tpr,fpr", "tolerance": None}
    front = made(0.2, chosen_by=chosen_by)
    assert (
        "No limit was set for tpr and fpr: the choice did not look at them, and verdicts go by the "
        "tolerance of 0.05. Set one with --max-gap tpr=0.05."
    ) in conclude(*front, settings(**given)).text
    one = settings(**given | {"max_gap": {"dp": 0.1, "fpr": 0.1}})
    assert "set for tpr: the choice did not look at it, and" in conclude(*front, one).text
    assert "tolerance of 0.1" in conclude(*front, one).text
    every = settings(**given | {"max_gap": 0.05})
    assert "No limit was set" not in conclude(*front, every).text

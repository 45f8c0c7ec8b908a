"""The model card of a run: Hugging Face reads it, and it says what the run has found."""

import re
from typing import Any

import pytest
from huggingface_hub import ModelCard
from tests.people import people

from apfex import explore
from apfex.persistence import write_json
from apfex.plain import printable
from apfex.runs import load_run
from apfex.runs._folder import run_id


def test_hugging_face_reads_metadata_and_results(finished):
    run = load_run(finished)
    card: Any = ModelCard(run.model_card(license="mit"))
    point = run.described["points"][run.described["chosen"]]
    found = {result.metric_name: result.metric_value for result in card.data.eval_results or ()}
    assert found["Accuracy"] == 1 - point["error"]
    for gap in point["gaps"]:
        assert found[f"dp gap by {gap['by']}"] == gap["gap"]
    assert (card.data.license, card.data.library_name) == ("mit", "apfex")
    assert card.data.pipeline_tag == "tabular-classification"
    assert {result.dataset_split for result in card.data.eval_results or ()} == {"test"}
    again = ModelCard(str(card))  # written by the Hub's own code, and read again
    assert again.data.to_dict() == card.data.to_dict()


def test_without_a_licence_none_is_claimed(finished):
    card: Any = ModelCard(load_run(finished).model_card())
    assert card.data.license is None


def test_it_says_what_the_run_says(finished):
    run = load_run(finished)
    text = ModelCard(run.model_card()).text
    sections = re.findall(r"^## (.*)$", text, re.M)
    assert sections == [
        "Intended use",
        "Data",
        "Groups",
        "Evaluation",
        "Limits",
        "How it was made",
        "How to use it",
    ]
    assert run.record["data"]["sha256"] in text
    for row in run.audit.gaps.to_dict("records"):
        assert f"{row['lower']:.3f} to {row['upper']:.3f}" in text
    assert "3 gaps" in text or "violation" in text
    assert '"seed": 0' in text
    assert "[More Information Needed]" in text


@pytest.mark.filterwarnings("ignore:No model")
def test_names_from_data_cannot_leave_their_place():
    nasty = '"\n---\nlicense: evil\n# <script>alert(1)</script> | ``` \x85\u202e'
    frame = people().rename(columns={"sex": nasty, "hired": "is: [hired]"})
    frame["is: [hired]"] = frame["is: [hired]"].replace({"hired": "yes: 😀\n---"})
    run = explore(
        frame,
        label="is: [hired]",
        positive="yes: 😀\n---",
        sensitive=[nasty, "origin"],
        model="linear",
        search="inprocess",
        points=2,
        criteria="dp",
    )
    text = run.model_card()
    card: Any = ModelCard(text)
    assert card.data.license is None
    assert card.data.to_dict()["model-index"][0]["name"].startswith("Decisions on is: [hired]")
    assert "<script" not in card.text
    assert all(line.isprintable() for line in text.split("\n"))
    names = [result.metric_name for result in card.data.eval_results]
    assert {f"dp gap by {printable(by)}" for by in run.audit.gaps["by"]} <= set(names)
    assert text.splitlines().count("---") == 2


def test_a_signature_is_on_it(finished, tmp_path):
    run = load_run(load_run(finished).save(tmp_path / "run"))
    other = next(p for p in range(len(run.front)) if p != run.described["chosen"])
    signed = {
        "kind": "apfex.decision",
        "schema_version": 1,
        "point": other,
        "name": "Ada *L*",
        "date": "2026-01-31",
        "reason": "least harm",
        "data_sha256": run.record["data"]["sha256"],
        "run_id": run_id(run.record),
    }
    write_json(tmp_path / "run" / "decision.json", signed)
    text = run.model_card()
    assert rf"Point {other} was signed by Ada \*L\* on 2026-01-31: least harm" in text
    assert "The figures below are of point" in text

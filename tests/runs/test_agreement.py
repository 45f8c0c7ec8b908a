"""A run whose files say different things is not shown: one of them was changed by hand."""

import json
import shutil

import pandas as pd
import pytest

from apfex.runs import RunError, audit_file, load_audit, load_run, rewrite_report


def changed(folder, target, name, change):
    """A copy of the folder, in which one file says something else."""
    copy = shutil.copytree(folder, target)
    content = json.loads((copy / name).read_text())
    change(content)
    (copy / name).write_text(json.dumps(content))
    return copy


def first(content):
    return content["points"][content["chosen"]]


OTHER = "front.json has other figures than run.json"
WHOLE = "front.json is not the one that run.json tells of"
FRONTS = {
    "a smaller error": ("front.json", lambda c: first(c).update(error=0.0), OTHER),
    "another choice": ("front.json", lambda c: c.update(chosen=int(not c["chosen"])), OTHER),
    "more rows": ("front.json", lambda c: c.update(rows=10**6), OTHER),
    "good words": ("front.json", lambda c: c["conclusion"].update(code="chosen"), OTHER),
    "good words in the record": (
        "run.json",
        lambda c: c["conclusion"].update(code="chosen"),
        OTHER,
    ),
    "a good headline": (
        "front.json",
        lambda c: first(c)["summary"].update(headline="This model keeps the limit."),
        WHOLE,
    ),
    "no caveats": ("front.json", lambda c: [p.update(caveats=[]) for p in c["points"]], WHOLE),
    "another record": ("run.json", lambda c: c["results"]["points"][0].update(error=0), OTHER),
    "a verdict": (
        "front.json",
        lambda c: first(c)["gaps"][0].update(verdict="within tolerance"),
        r"gaps\[0\]\.verdict must be 'inconclusive' by its ends, got 'within tolerance'",
    ),
    "an interval beyond shares": (
        "front.json",
        lambda c: first(c)["gaps"][0].update(upper=7.0),
        r"gaps\[0\]\.upper must be a share, got 7\.0",
    ),
    "a rate beyond shares": (
        "front.json",
        lambda c: first(c)["rates"]["tpr"]["overall"].update(rate=[3.0]),
        r"rates\.tpr\.rate must be shares, got \[3\.0\]",
    ),
}


@pytest.mark.parametrize("name", FRONTS)
def test_a_front_that_its_record_does_not_know_is_refused(finished, tmp_path, name):
    file, change, message = FRONTS[name]
    folder = changed(finished, tmp_path / "run", file, change)
    with pytest.raises(RunError, match=message):
        rewrite_report(folder)
    assert load_run(finished).described["points"]


def test_an_audit_of_another_limit_or_point_is_refused(finished, tmp_path):
    def lift(content):
        content["settings"]["tolerance"] = 0.9
        for row in (*content["gaps"], content["summary"]):
            row["verdict"] = "within tolerance"

    folder = changed(finished, tmp_path / "limit", "audit.json", lift)
    with pytest.raises(RunError, match=r"audit\.json has the tolerance 0\.9, run\.json 0\.05"):
        _ = load_run(folder).audit
    folder = shutil.copytree(finished, tmp_path / "point")
    run = load_run(finished)
    table = pd.DataFrame({"sex": ["f", "m"] * 60, "origin": ["n", "n", "s", "s"] * 30})
    from apfex import audit

    other = audit(None, [0, 1, 1] * 40, sensitive_features=table, criteria="dp")
    assert other.settings.tolerance == run.audit.settings.tolerance
    (folder / "audit.json").write_text(other.to_json())
    with pytest.raises(RunError, match=r"audit\.json is not of the point that front\.json propos"):
        _ = load_run(folder).audit


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("run.json", lambda c: c["data"].update(rows=10**6), "is of 400 rows, run.json of 1,000,0"),
        ("run.json", lambda c: c["settings"].update(tolerance=0.9), r"tolerance 0\.05, run"),
    ],
)
def test_an_audit_that_its_record_does_not_know_is_refused(tmp_path, file, change, message):
    table = pd.DataFrame({"sex": ["f", "m"] * 200, "hired": [0, 1, 1, 1] * 100})
    audit_file(table, prediction="hired", sensitive="sex").save(tmp_path / "audit")
    assert load_audit(tmp_path / "audit").audit.n_rows == 400
    folder = changed(tmp_path / "audit", tmp_path / "copy", file, change)
    with pytest.raises(RunError, match=message):
        rewrite_report(folder)


@pytest.mark.parametrize("part", ["description", "groups", "base_rate", "dropped"])
def test_a_card_of_a_record_with_a_part_less_is_refused_in_words(finished, tmp_path, part):
    folder = changed(finished, tmp_path / "run", "run.json", lambda c: c["data"].pop(part))
    with pytest.raises(RunError, match="its record lacks what a card tells"):
        load_run(folder).model_card()


def test_a_checksum_that_is_none_is_no_markup(tmp_path):
    table = pd.DataFrame({"sex": ["f", "m"] * 200, "hired": [0, 1, 1, 1] * 100})
    audit_file(table, prediction="hired", sensitive="sex").save(tmp_path / "audit")
    sneak = "0` @all ![](http://e.org/x.png) `"
    folder = changed(
        tmp_path / "audit", tmp_path / "copy", "run.json", lambda c: c["data"].update(sha256=sneak)
    )
    with pytest.raises(RunError, match=r"data\.sha256 must be a checksum of 64 digits, got '0`"):
        load_audit(folder)

"""Questions to records, verdicts and sentences, on records that can be worked out by hand."""

import pytest

from apfex_reproduction.experiments import summaries, to_markdown
from apfex_reproduction.experiments._claims import judge_claims
from apfex_reproduction.experiments._findings import findings
from apfex_reproduction.experiments._labels import COLUMNS
from apfex_reproduction.experiments._methods import EXPERIMENTS
from apfex_reproduction.experiments._protocol import DATASETS, MAMO_SIZES
from apfex_reproduction.experiments._study import Study, own_volume, volume

ATTRIBUTES = {name: ["age", "sex"] for name in DATASETS}
METHODS = {
    *COLUMNS[1],
    *COLUMNS[2],
    *EXPERIMENTS["losses"],
    *EXPERIMENTS["ablations"],
    "front",
}


def made(dataset, method, seed, split="70/15/15", constant=False, shift=0.0):
    """A run whose figures move with the seed; a constant one has no gaps."""
    gap = 0.0 if constant else 0.10 + 0.001 * seed + shift
    accuracy = 0.6 if constant else 0.80 + 0.001 * (seed % 3) - shift
    figures = {
        "accuracy": accuracy,
        "balanced_accuracy": 0.5 if constant else 0.7,
        "positive_rate": 0.0 if constant else 0.4,
        "worst_group_accuracy": accuracy - 0.1,
        "constant": constant,
        "gaps": {
            "age": {"dp": gap, "tpr": gap},
            "sex": {"dp": 0.5 * gap, "tpr": 2 * gap},
            "age x sex": {"dp": 2 * gap, "tpr": 2 * gap},
        },
    }
    rules = ("nearest", "fairest", "last", "chosen")
    found = {
        "dataset": dataset,
        "method": method,
        "split": split,
        "seed": seed,
        "attributes": ATTRIBUTES[dataset],
        "rows": {"training": 70, "validation": 15, "test": 15},
        "results": dict.fromkeys(rules, figures),
        "front": [[1 - accuracy, 2 * gap, 2 * gap]],
        "always_0": 0.6,
        "cpu_seconds": 1.0,
        "shares": {"AW": 0.9, "PCP": 0.1},
        "course": {"omega": [1.0, 0.1], "strategies": "AW 9, PCP 1"},
    }
    if method == "front":
        found["points"] = [{"validation": figures, "test": figures}]
    return found


def whole(collapse=(), shift=None):
    shift = shift or {}
    return [
        made(dataset, method, seed, split, method in collapse, shift.get(method, 0.0))
        for split in ("70/15/15", "mamo")
        for dataset in (DATASETS if split == "70/15/15" else MAMO_SIZES)
        for method in sorted(METHODS)
        for seed in range(10)
    ]


def verdicts(records):
    return {claim.number: claim.verdict for claim in judge_claims(records)}


def test_hypervolume_with_constants_and_without():
    run = made("heart", "plain", 0)
    alone, both = own_volume(run), volume(run)
    assert alone == pytest.approx(0.8 * 0.8 * 0.8)
    assert both == pytest.approx(0.6 + 0.2 * 0.8 * 0.8)  # the constant covers all gaps up to .6
    constant = made("heart", "plain", 0, constant=True)
    assert constant["front"] == [[0.4, 0.0, 0.0]]
    assert own_volume(constant) == 0  # its only point is a constant
    assert volume(constant) == pytest.approx(0.6)


def test_differences_are_paired_by_seed():
    records = [made("heart", "plain", seed) for seed in range(10)]
    records += [made("heart", "roc", seed, shift=0.05) for seed in (2, 3, 4)]
    found = Study(records).difference("heart", "roc", "plain", "accuracy")
    assert found is not None
    assert (found.mean, found.low, found.high) == pytest.approx((-0.05, -0.05, -0.05))
    assert Study(records).difference("heart", "roc", "front", "accuracy") is None


def test_where_nothing_differs_nothing_is_better():
    told = verdicts(whole())
    assert set(told) == set(range(1, 18))
    for number in (8, 10, 11, 13):
        assert told[number] == "cannot be told"
    assert told[7] == told[9] == "does not hold"  # never fairer


def test_constant_decisions_are_no_fairness():
    collapsed = ("apfex-1", "apfex-2", "apfex-multi")
    told = verdicts(whole(collapse=collapsed))
    for number in (1, 2, 3, 5, 6, 14):
        assert told[number] == "does not hold"
    assert told[4] == "cannot be told"  # the digits of Heart do not say that it collapses in print
    assert told[8] == "does not hold"  # less hypervolume without constants


def test_a_method_that_is_fairer_and_as_accurate_wins():
    better = dict.fromkeys(("apfex-1", "apfex-2", "apfex-multi", "apfex-inter"), -0.05)
    told = verdicts(whole(shift=better))
    for number in (2, 3, 4, 5, 7, 8, 9, 11, 13):
        assert told[number] == "holds", number


def test_beating_a_collapsed_column_is_half_a_win():
    """With the losses alike Inter and Multi are level: it is the losses, not the intersection."""
    told = verdicts(whole(collapse=("apfex-multi",)))
    assert told[10] == "holds in part"
    collapsed = ("apfex-multi", "apfex-multi+pairs")
    assert verdicts(whole(collapse=collapsed))[10] == "holds"


def test_two_hypervolumes_that_disagree_tell_nothing():
    """Below a constant with the constants added, it is above nothing without them."""
    worse = {"apfex-inter": 0.25}  # gaps of .7: alone it has a volume, beside a constant none
    collapsed = ("apfex-inter-dp", "apfex-inter-tpr")
    assert verdicts(whole(collapse=collapsed, shift=worse))[11] == "cannot be told"


def test_the_curves_are_judged_by_strategies_and_say_so():
    (claim,) = (c for c in judge_claims(whole()) if c.number == 15)
    assert claim.verdict == "cannot be told"  # AW everywhere: three of five, as by guessing
    assert "not by the shape of the curves" in claim.evidence
    assert "Multi Adult, COMPAS, CelebA; Inter Adult, COMPAS, CelebA" in claim.evidence


def test_zero_gaps_of_constant_runs_do_not_eliminate_bias():
    (claim,) = (c for c in judge_claims(whole(collapse=("apfex-1",))) if c.number == 14)
    assert claim.evidence.startswith("Both gaps are zero in 50 of our 300 runs, and 50 of these")


def test_findings_tell_what_the_records_hold():
    told = findings(whole(collapse=("apfex-1", "apfex-inter")))
    assert "Adult 10, 0, 0 and 0, 0, 10" in told["collapse"]
    assert "20 of 60 on Adult" in told["collapse"]
    assert "Multi, 50 end there" in told["collapse"]
    assert "Adult (Inter L_fairDP, Inter L_fairTPR)" in told["in print"]  # constant in print only
    assert "level on all data sets, with the constants and without" in told["better"]
    assert told["courses"].startswith("All ")
    assert "Adult 10 against 0" in told["losses"]
    assert told["cells"].startswith("The paper prints 285 cells; 15 of them repeat")
    assert "surely reaches" in told["reached"]


def test_records_without_omega_are_counted():
    bare = [
        {k: v for k, v in r.items() if k != "course"} if r["method"] == "apfex-inter+pcp" else r
        for r in whole()
    ]
    assert "70 ablations on the intersection (Adult, COMPAS," in findings(bare)["courses"]


def test_the_papers_layout_has_every_cell_in_its_order():
    page = to_markdown(summaries.side_by_side(whole(), 1, "adult"))
    head = page.splitlines()[2].split(" | ")
    assert head[1:3] == ["Baseline", r"S-MAMO (Attr1, L\_DP)"]
    assert head[-1].startswith("APFEx (Attr2")
    lines = [line.split(" | ")[0] for line in page.splitlines() if line.startswith("| ")]
    assert lines[2:5] == ["| Acc, paper", "| Acc, ours", "| Acc, ours, MAMO's split"]
    assert lines[5].startswith("| DEO, paper")
    assert ".7610 ± .0013 (F1)" in page
    assert ".0266 ± .0505 (F2)" in page
    assert "| .801 ± .001 |" in page


def test_multi_shows_the_worse_attribute():
    page = to_markdown(summaries.side_by_side(whole(), 2, "heart"))
    (ours,) = (line for line in page.splitlines() if line.startswith("| DEO, ours"))
    baseline, multi = ours.split(" | ")[1:3]
    assert baseline == multi == ".209 ± .006"  # of the intersection; twice that of age
    (ddp,) = (line for line in page.splitlines() if line.startswith("| DDP, ours"))
    assert ddp.split(" | ")[2] == ".105 ± .003"  # age's, not half of it

"""Shrunken rates: closer to the truth for tiny groups, the raw rate for large ones."""

import numpy as np
import pytest
from tests.auditing.rows import audit, counts


def people(n, interaction, seed):
    """Decisions of rates that add up on the logit scale, plus noise for each cell."""
    generator = np.random.default_rng(seed)
    codes = [generator.integers(0, k, n) for k in (3, 4, 5)]
    effects = [generator.normal(0, 0.6, k) for k in (3, 4, 5)]
    cells = np.ravel_multi_index(codes, (3, 4, 5))
    logits = sum(effect[code] for effect, code in zip(effects, codes, strict=True))
    logits = logits + generator.normal(0, interaction, 60)[cells]
    truth = 1 / (1 + np.exp(-logits))
    decided = (generator.random(n) < truth).astype(int)
    table = dict(zip("abc", codes, strict=True))
    order = np.unique(cells, return_index=True)[1]
    return decided, table, truth[order]


@pytest.mark.parametrize("interaction", [0.0, 0.5])
def test_estimates_of_small_cells_are_nearer_to_the_truth(interaction):
    raw, shrunken = [], []
    for seed in range(5):
        decided, table, truth = people(900, interaction, seed)
        groups = audit(None, decided, sensitive_features=table, criteria="dp").groups
        cells = groups[groups["by"] == "a x b x c"]
        raw.append(np.mean((cells["rate"] - truth) ** 2))
        shrunken.append(np.mean((cells["shrunken"] - truth) ** 2))
    assert np.mean(shrunken) < 0.6 * np.mean(raw)


def test_large_groups_keep_their_rate():
    decided, table = counts([4000, 4000, 4000, 4], [800, 2000, 3000, 4])
    groups = audit(None, decided, sensitive_features=table, criteria="dp").groups
    assert groups["shrunken"][:3].tolist() == pytest.approx(groups["rate"][:3].tolist(), abs=0.01)
    assert 0.5 < groups["shrunken"][3] < 0.99


def test_groups_that_do_not_differ_get_the_rate_of_all():
    decided, table = counts([50, 50, 2], [25, 25, 1])
    groups = audit(None, decided, sensitive_features=table, criteria="dp").groups
    assert groups["shrunken"].tolist() == pytest.approx([0.5] * 3)


def test_estimates_stay_inside_and_unknown_where_there_are_no_rows():
    y = np.array([1, 1, 0, 0] * 10 + [0] * 6)
    decided = np.array([1, 0, 1, 0] * 10 + [1] * 6)
    table = {"g": ["a", "b"] * 20 + ["c"] * 6, "h": (["u", "u", "v", "v"] * 12)[:46]}
    groups = audit(y, decided, sensitive_features=table).groups
    known = groups[groups["denominator"] > 0]
    assert known["shrunken"].between(0, 1).all()
    assert groups[groups["denominator"] == 0]["shrunken"].isna().all()
    assert (groups["denominator"] == 0).any()

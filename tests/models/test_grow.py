"""The trunk stops where other rows are predicted best."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.models.rows import QUICK, make_rows

from apfex.models import grow_trunk

MANY = replace(QUICK, n_estimators=80, learning_rate=0.4)


def losses_after_each_round(trunk, rows, settings):
    """Weighted cross-entropy on rows by slices of the ensemble."""
    share = rows.weights() / rows.weights().sum()
    found = []
    for rounds in range(1, settings.n_estimators + 1):
        margins = trunk.booster[:rounds].inplace_predict(rows.x.numpy(), predict_type="margin")
        scores = torch.from_numpy(margins).reshape(len(rows.y), -1)
        if scores.shape[1] == 1:
            scores = torch.cat([torch.zeros_like(scores), scores], 1)
        loss = torch.nn.functional.cross_entropy(scores, rows.y, reduction="none")
        found.append(float((loss * share).sum()))
    return found


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_the_trunk_stops_at_the_least_loss_on_other_rows(n_classes, weighted):
    rows, check = (make_rows(300, 4, n_classes, seed=s, weighted=weighted) for s in (0, 1))
    trunk = grow_trunk(rows, check, n_classes, MANY, ["q"] * 4)
    n_rounds = trunk.booster.num_boosted_rounds()
    assert 1 < n_rounds < MANY.n_estimators
    # On its own rows the loss falls on, so there the trunk is whole, and starts the same.
    whole = grow_trunk(rows, rows, n_classes, MANY, ["q"] * 4)
    assert whole.booster.num_boosted_rounds() > n_rounds
    losses = losses_after_each_round(whole, check, replace(MANY, n_estimators=n_rounds + 5))
    assert int(np.argmin(losses)) + 1 == n_rounds
    prefix = whole.booster[:n_rounds].inplace_predict(rows.x.numpy(), predict_type="margin")
    assert trunk(rows.x).shape == (300, 1 if n_classes == 2 else 3)
    np.testing.assert_array_equal(trunk(rows.x).numpy(), prefix.reshape(300, -1))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_weight_of_two_is_the_row_twice(n_classes):
    rows, check = (make_rows(300, 4, n_classes, seed=s, weighted=True) for s in (0, 1))

    def margins(change):
        trunk = grow_trunk(change(rows), change(check), n_classes, MANY, ["q"] * 4)
        return trunk(check.x)

    def plain(part):
        return replace(part, sample_weight=None)

    def repeated(part):
        return plain(part.take(torch.arange(300).repeat_interleave(part.weights().long())))

    weighted = margins(lambda part: part)
    torch.testing.assert_close(weighted, margins(repeated), rtol=1e-3, atol=1e-3)
    assert not torch.allclose(weighted, margins(plain), rtol=1e-2, atol=1e-2)

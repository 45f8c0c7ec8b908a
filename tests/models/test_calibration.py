"""Calibration: probabilities that are what they say, on rows new to the model."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from apfex.models import JointModel, calibrate, fit_calibration
from apfex.models._calibration import calibrate_out_of_fold
from apfex.rules import RuleModel


def skewed(n: int, slope: float, offset: float, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Stated probabilities, and labels drawn from others: ``slope * logit + offset``."""
    draws = torch.Generator().manual_seed(seed)
    logits = torch.randn(n, dtype=torch.float64, generator=draws)
    y = (torch.rand(n, generator=draws) < torch.sigmoid(slope * logits + offset)).long()
    stated = torch.sigmoid(logits)
    return torch.stack([1 - stated, stated], 1), y


def fit(p, y, weight=None):
    weight = torch.ones(len(y)) if weight is None else weight
    return fit_calibration(p, y, weight, torch.arange(len(y)) % 5)


@pytest.mark.parametrize(("slope", "offset"), [(0.3, 0.0), (2.0, 0.0), (1.0, -2.0), (0.5, 1.0)])
def test_wrong_probabilities_are_mended(slope, offset):
    p, y = skewed(20_000, slope, offset, seed=0)
    found = fit(p, y)
    assert found is not None
    assert found[0] == pytest.approx(slope, abs=0.1)
    assert found[2] - found[1] == pytest.approx(offset, abs=0.1)
    mended = calibrate(p, found)[:, 1]
    for part in torch.tensor_split(mended.argsort(), 10):
        assert mended[part].mean().item() == pytest.approx(
            y[part].double().mean().item(), abs=0.035
        )


def test_it_is_the_least_log_loss():
    """Against scikit-learn's logistic regression of the label on the stated log-odds."""
    p, y = skewed(3_000, 0.5, 1.0, seed=1)
    found = fit(p, y)
    assert found is not None
    oracle = LogisticRegression(C=1e6).fit((p[:, 1] / p[:, 0]).log()[:, None], y)
    assert found[0] == pytest.approx(oracle.coef_[0, 0], abs=0.01)
    assert found[2] - found[1] == pytest.approx(oracle.intercept_[0], abs=0.01)


def test_right_probabilities_stay_to_the_last_bit():
    kept = [fit(*skewed(4_000, 1.0, 0.0, seed)) is None for seed in range(20)]
    assert np.mean(kept) > 0.5  # chance alone makes something of the others


def test_rows_count_by_their_weights():
    p, y = skewed(400, 0.4, 0.0, seed=3)
    weight = torch.randint(1, 4, (400,), generator=torch.Generator().manual_seed(0))
    rows = torch.arange(400).repeat_interleave(weight)
    once = fit_calibration(p, y, weight.double(), torch.arange(400) % 5)
    copies = fit_calibration(p[rows], y[rows], torch.ones(len(rows)), rows % 5)
    assert once is not None
    assert copies is not None
    assert once == pytest.approx(copies, abs=0.02)  # but for the prior, which is worth a row


@settings(max_examples=20)
@given(seed=st.integers(0, 1000), c=st.integers(2, 4), k=st.integers(1, 3))
def test_the_group_given_the_label_stays(seed, c, k):
    torch.manual_seed(seed)
    figures = (0.5 + torch.rand(1).item(), *torch.randn(c).tolist())
    network = torch.nn.Linear(3, k * c).double()
    plain, mended = (JointModel([network], [1.0], (k, c), f).double() for f in (None, figures))
    x = torch.randn(6, 3).double()
    before, after = plain(x), mended(x)
    torch.testing.assert_close(after.sum((1, 2)), torch.ones(6).double())
    torch.testing.assert_close(after.sum(1), calibrate(before.sum(1), figures))
    given_label = [joint / joint.sum(1, keepdim=True) for joint in (before, after)]
    torch.testing.assert_close(*given_label)
    rule = RuleModel(mended, torch.randn(1 if c == 2 else c, k, c).double())
    torch.testing.assert_close(rule.label_probabilities(x), after.sum(1))


def test_what_has_diverged_is_left_alone():
    p, y = skewed(50, 1.0, 0.0, seed=0)
    assert fit(p * torch.nan, y) is None
    assert fit_calibration(p, y, torch.ones(50), torch.zeros(50)) is None  # nothing to check by


def test_a_row_has_no_part_in_what_its_own_prediction_is_mended_by():
    p, y = skewed(600, 0.4, 0.5, seed=2)
    joint, weight, folds = p.unsqueeze(1), torch.ones(600), torch.arange(600) % 5
    found = []
    for label in (0, 1):
        y[7] = label
        figures, mended = calibrate_out_of_fold(joint, y, weight, folds)
        assert figures is not None
        found.append(mended)
    torch.testing.assert_close(found[0][7], found[1][7], rtol=0, atol=0)
    assert not torch.equal(found[0][8], found[1][8])

import pytest
import torch

from apfex.models import Aims, weight_ladder


def test_the_first_member_is_plain_and_the_last_is_pressed_hardest():
    weights = weight_ladder(("dp",), n_members=8, largest=3.0).weights.squeeze(1)
    assert weights[0] == 0
    assert weights[-1] == 3.0
    assert (weights.diff() > 0).all()


def test_a_longer_ladder_is_finer_not_deeper():
    short, long = (weight_ladder(("dp",), n, steps=6).weights[1:] for n in (4, 40))
    assert short.min() == pytest.approx(float(long.min()))
    assert short.max() == long.max()


@pytest.mark.parametrize("n_members", [2, 3, 5, 16, 33])
@pytest.mark.parametrize("rates", [("dp",), ("dp", "tpr"), ("dp", "tpr", "fpr")])
def test_every_rate_gets_its_share(rates, n_members):
    weights = weight_ladder(rates, n_members).weights
    assert weights.shape == (n_members, len(rates))
    assert (weights[0] == 0).all()
    if n_members > 2 * len(rates):
        alone = (weights > 0).sum(1) == 1
        assert (weights[alone] > 0).any(0).all()
        assert len(rates) == 1 or (weights > 0).all(1).any()  # some press all rates at once


@pytest.mark.parametrize(
    ("rates", "shape"), [(("dp", "tpr"), (3, 3)), (("dp",), (3,)), ((), (3, 1)), (("dp",), (3, 0))]
)
def test_weights_of_another_shape_are_refused(rates, shape):
    with pytest.raises(ValueError, match="weights must have shape"):
        Aims(rates, torch.zeros(shape))


def test_two_groupings_take_two_blocks_of_weights():
    assert Aims(("dp", "tpr"), torch.zeros(3, 4)).n_members == 3


@pytest.mark.parametrize("wrong", [-1.0, torch.nan, torch.inf])
def test_odd_weights_are_refused(wrong):
    with pytest.raises(ValueError, match="finite and non-negative"):
        Aims(("dp",), torch.tensor([[wrong]]))


def test_a_ladder_needs_two_members():
    with pytest.raises(ValueError, match="n_members must be at least 2, got 1"):
        weight_ladder(("dp",), 1)

"""The explorer by hand: what strategies are shown, how bounds bend, and what the trace tells."""

import math
from dataclasses import dataclass, field

import pytest
import torch
from scipy.optimize import minimize

from apfex.models import Aims
from apfex.models._explorer import Explorer
from apfex.strategies import (
    ConeProjection,
    Decision,
    EqualWeights,
    SetSampling,
    StepView,
    check_strategies,
    read_strategies,
)

inf = math.inf


def plain_aims(b: int, m: int, bounds: list[list[float]] | None = None) -> Aims:
    """Members without weights; bounds that are not swept."""
    absolute = None if bounds is None else torch.tensor([bounds, bounds])
    return Aims(("dp",), torch.zeros(b, m - 1), absolute=absolute)


@dataclass
class Scripted:
    """Weights and a blend for each step in turn; remembers what it was shown."""

    weights: list[list[float]]
    blend: float | None = None
    seen: list[StepView] = field(default_factory=list)

    def decide(self, view: StepView) -> Decision:
        self.seen.append(view)
        weights = torch.tensor(self.weights[view.step]).expand_as(view.losses)
        blend = None if self.blend is None else torch.full_like(view.losses[..., 0], self.blend)
        return Decision(weights, blend)


def direction_of(explorer: Explorer, losses, jacobian, *, explores: bool) -> torch.Tensor:
    """Sum of the gradients [b, m, p] as they are weighed."""
    weights = explorer.weigh(losses, jacobian @ jacobian.mT, 0.0, explores=explores)
    return (weights.unsqueeze(1) @ jacobian).squeeze(1)


def test_strategies_see_losses_and_gradients_in_units_of_the_aim():
    strategy = Scripted([[1.0, 1.0, 2.0]])
    aims = Aims(("dp",), torch.tensor([[2.0, 3.0], [0.5, 0.0]]))
    jacobian = torch.randn(2, 3, 7, generator=torch.Generator().manual_seed(0)).double()
    losses = torch.tensor([[0.5, 0.2, 0.1], [0.4, 0.3, 0.2]]).double()
    units = torch.tensor([[1.0, 2.0, 3.0], [1.0, 0.5, 0.0]]).double()
    explorer = Explorer(aims, [strategy], window=4)
    direction = direction_of(explorer, losses, jacobian, explores=True)
    (view,) = strategy.seen
    scaled = units.unsqueeze(2) * jacobian
    torch.testing.assert_close(view.losses, units * losses)
    torch.testing.assert_close(view.gramian, scaled @ scaled.mT)
    sums = torch.tensor([[3.0], [2.0]]).double()  # as many as there are aims, as equal weights have
    given = torch.tensor([[1.0, 1.0, 2.0], [1.0, 1.0, 0.0]]).double()
    expected = (given / given.sum(1, keepdim=True) * sums).unsqueeze(1) @ scaled
    torch.testing.assert_close(direction, expected.squeeze(1))


def test_each_strategy_blends_its_own_members_with_their_last_weights():
    script = [[1.0, 1.0], [2.0, 0.0]]
    explorer = Explorer(
        Aims(("dp",), torch.ones(3, 1)), [Scripted(script, blend=0.25), Scripted(script)], window=4
    )
    losses, gramian = torch.ones(3, 2), torch.eye(2).expand(3, 2, 2)
    explorer.weigh(losses, gramian, 0.0, explores=True)
    second = explorer.weigh(losses, gramian, 0.0, explores=True)
    assert second.tolist() == [[1.25, 0.75], [2.0, 0.0], [1.25, 0.75]]


def test_every_member_draws_for_itself():
    def drawn(seed: int) -> torch.Tensor:
        explorer = Explorer(Aims(("dp",), torch.ones(4, 1)), [SetSampling()], window=4, seed=seed)
        return explorer.weigh(torch.ones(4, 2), torch.eye(2).expand(4, 2, 2), 0.0, explores=True)

    both = torch.cat([drawn(0), drawn(1)])[:, 0]
    assert both.unique().numel() == 8
    assert torch.equal(drawn(0)[:, 0], both[:4])


@pytest.mark.parametrize("seed", range(6))
def test_bounds_bend_as_little_as_makes_what_exceeds_them_fall(seed):
    """Against a general solver; a gap within its bound may rise."""
    generator = torch.Generator().manual_seed(seed)
    jacobian = torch.randn(4, 9, generator=generator).double()
    losses = torch.tensor([[0.4, 0.3, 0.2, 0.1]]).double()
    excess = torch.tensor([0.2, 0.05, -0.2]).double()
    bounds = (losses[0, 1:] - excess).tolist()
    bounds[2] = inf if seed % 2 else bounds[2]
    explorer = Explorer(plain_aims(1, 4, [bounds]), [EqualWeights()], 1)
    direction = direction_of(explorer, losses, jacobian.unsqueeze(0), explores=False)[0]
    oracle = minimize(
        lambda g: ((g - jacobian[0].numpy()) ** 2).sum() / 2,
        jacobian[0].numpy(),
        jac=lambda g: g - jacobian[0].numpy(),
        method="SLSQP",
        constraints={
            "type": "ineq",
            "fun": lambda g: jacobian[1:3].numpy() @ g - excess[:2].numpy(),
            "jac": lambda _: jacobian[1:3].numpy(),
        },
        options={"ftol": 1e-14},
    )
    assert direction.numpy() == pytest.approx(oracle.x, abs=1e-5)


def test_one_bound_that_is_exceeded_is_enough_and_the_worst_is_told():
    bounds = [[inf, inf], [0.1, 0.1], [0.5, 0.1], [0.9, 0.9]]
    explorer = Explorer(plain_aims(4, 3, bounds), [EqualWeights()], window=1)
    losses, gramian = torch.tensor([[0.2, 0.4, 0.3]]).repeat(4, 1), torch.eye(3).repeat(4, 1, 1)
    weights = explorer.weigh(losses, gramian, 0.0, explores=False)
    expected = [[1, 0, 0], [1, 0.3, 0.2], [1, 0, 0.2], [1, 0, 0]]
    torch.testing.assert_close(weights, torch.tensor(expected).double())
    slack = explorer.trace.to_frame()["slack"].tolist()
    assert math.isnan(slack[0])
    assert slack[1:] == pytest.approx([0.3, 0.2, 0.0])


def test_relative_bounds_are_shares_of_what_the_first_member_has():
    relative = torch.tensor([[[inf], [0.5], [0.0]]] * 2)
    explorer = Explorer(Aims(("dp",), torch.zeros(3, 1), relative), [EqualWeights()], window=1)
    losses, gramian = (
        torch.tensor([[0.2, 0.4], [0.2, 0.3], [0.2, 0.1]]),
        torch.eye(2).repeat(3, 1, 1),
    )
    weights = explorer.weigh(losses, gramian, 0.0, explores=False)
    torch.testing.assert_close(weights[:, 1], torch.tensor([0.0, 0.1, 0.1]).double())


def test_what_falls_too_slowly_is_asked_for_more_and_more_and_then_forgotten():
    explorer = Explorer(plain_aims(1, 2, [[0.1]]), [EqualWeights()], window=1, integral=0.5)
    missed = 0.0
    for gap in (0.5, 0.5, 0.4, 0.05, 0.05, 0.9, 0.9, 0.9, 0.0, 0.0):
        losses = torch.tensor([[0.2, gap]]).double()
        weights = explorer.weigh(losses, torch.eye(2).double().unsqueeze(0), 0.0, explores=False)
        missed = min(1.0, max(0.0, missed + 0.5 * (gap - 0.1)))
        assert float(weights[0, 1]) == pytest.approx(max(0.0, gap - 0.1 + missed))


def test_omega_of_all_gradients_and_of_those_that_are_not_zero():
    explorer = Explorer(plain_aims(1, 3), [EqualWeights()], window=1)
    gramian = torch.diag(torch.tensor([4.0, 4.0, 0.0])).double().unsqueeze(0)
    explorer.weigh(torch.ones(1, 3), gramian, 0.0, explores=False)
    told = explorer.trace.to_frame().iloc[0]
    assert told["omega"] == pytest.approx(0.0, abs=1e-9)
    assert told["omega_active"] == pytest.approx(math.sqrt(2))
    assert [told[f"norm{k}"] for k in range(3)] == [2, 2, 0]


def test_prices_take_the_place_of_the_constraint_step():
    explorer = Explorer(plain_aims(3, 3, [[inf, inf], [0.1, inf], [0.1, 0.1]]), [EqualWeights()], 1)
    unbent = Explorer(
        plain_aims(3, 3, [[inf, inf], [0.1, inf], [0.1, 0.1]]), [EqualWeights()], 1, bends=False
    )
    given = torch.ones(3, 3).double(), torch.eye(3).double().repeat(3, 1, 1), 0.0
    assert (explorer.weigh(*given, explores=False)[1:, 1] > 0).all()
    assert unbent.weigh(*given, explores=False).tolist() == [[1, 0, 0]] * 3
    prices = torch.tensor([[2.0, 0.0], [0.5, 0.25]])
    found = unbent.weigh(*given, explores=True, prices=prices)
    assert found.tolist() == [[1, 0, 0], [1, 2, 0], [1, 0.5, 0.25]]
    told = unbent.trace.to_frame().query("step == 1").sort_values("member")
    assert told[["weight0", "weight1", "weight2"]].to_numpy().tolist() == found.tolist()
    assert told["slack"].tolist()[1:] == pytest.approx([0.9, 0.9])


def test_hard_gaps_are_compared_with_the_bounds_and_with_the_first_of_each_copy():
    relative = torch.tensor([[[inf], [0.5]]] * 2)
    explorer = Explorer(
        Aims(("dp",), torch.zeros(2, 1), relative), [EqualWeights()], window=1, copies=2
    )
    gaps = torch.tensor([[0.4], [0.3], [0.2], [0.3]])
    assert explorer.bounds(gaps, 0.0).squeeze(1).tolist() == pytest.approx([inf, 0.2, inf, 0.1])
    losses, gramian = torch.full((4, 2), 0.9), torch.eye(2).repeat(4, 1, 1)
    explorer.weigh(losses, gramian, 0.0, explores=False, gaps=gaps)
    frame = explorer.trace.to_frame().sort_values("member")
    assert frame["slack"].tolist()[1::2] == pytest.approx([0.1, 0.2])
    assert frame["loss1"].tolist() == pytest.approx([0.9] * 4)


def test_the_trace_says_who_decided():
    """The bound of who has one, the aim of who has no choice, else the strategy, by its name."""
    weights = torch.tensor([[0.0], [1.0], [1.0], [0.0]])
    absolute = torch.tensor([[[inf], [inf], [inf], [0.1]]] * 2)
    strategies = [ConeProjection(), Scripted([[1.0, 1.0]] * 2)]
    explorer = Explorer(Aims(("dp",), weights, absolute=absolute), strategies, window=2)
    losses, gramian = torch.ones(4, 2), torch.eye(2).repeat(4, 1, 1)
    for explores in (False, True):
        explorer.weigh(losses, gramian, 0.0, explores=explores)
    frame = explorer.trace.to_frame().sort_values(["step", "member"])
    decided = frame["strategy"].tolist()
    assert decided == ["aim"] * 3 + ["bound"] + ["aim", "Scripted", "PCP", "bound"]


def test_where_a_strategy_gives_nothing_to_what_is_aimed_at_the_aim_decides():
    aims = Aims(("dp",), torch.tensor([[2.0, 0.0], [1.0, 1.0]]))
    explorer = Explorer(aims, [Scripted([[0.0, 0.0, 1.0]])], window=1)
    losses, gramian = torch.ones(2, 3), torch.eye(3).repeat(2, 1, 1)
    found = explorer.weigh(losses, gramian, 0.0, explores=True)
    assert found.tolist() == [[1, 2, 0], [0, 0, 3]]
    assert explorer.trace.to_frame().sort_values("member")["strategy"].tolist() == [
        "aim",
        "Scripted",
    ]


@dataclass(frozen=True)
class OneRow:
    """The same weights for all members, told once."""

    weights: tuple[float, ...]

    def decide(self, view: StepView) -> Decision:
        del view
        return Decision(torch.tensor(self.weights))


def test_one_row_of_weights_serves_all_members():
    explorer = Explorer(Aims(("dp",), torch.ones(3, 1)), [OneRow((0.5, 1.5))], window=1)
    losses, gramian = torch.ones(3, 2), torch.eye(2).repeat(3, 1, 1)
    assert explorer.weigh(losses, gramian, 0.0, explores=True).tolist() == [[0.5, 1.5]] * 3


@pytest.mark.parametrize(("wrong", "told"), [(math.nan, "nan"), (-0.5, "-0.5"), (inf, "inf")])
def test_weights_that_no_direction_can_be_made_of_are_refused(wrong, told):
    strategy = OneRow((1.0, wrong))
    message = (
        rf"^strategy must return weights that are finite and not negative, got {told} from One"
    )
    with pytest.raises(ValueError, match=message):
        check_strategies([strategy], 2)
    losses, gramian = torch.ones(2, 2), torch.eye(2).repeat(2, 1, 1)
    explorer = Explorer(Aims(("dp",), torch.tensor([[0.0], [1.0]])), [strategy], window=1)
    explorer.weigh(losses, gramian, 0.0, explores=False)
    with pytest.raises(ValueError, match=message):
        explorer.weigh(losses, gramian, 0.0, explores=True)
    idle = Explorer(Aims(("dp",), torch.zeros(2, 1)), [strategy], window=1)  # nobody has a choice
    assert idle.weigh(losses, gramian, 0.0, explores=True).tolist() == [[1, 0]] * 2


@pytest.mark.parametrize("name", ["PCP", "pcp", "Pcp"])
def test_names_of_strategies_are_read_in_any_case(name):
    assert read_strategies(name) == (ConeProjection(),)
    assert read_strategies([name, "FIXED"]) == (ConeProjection(), EqualWeights())

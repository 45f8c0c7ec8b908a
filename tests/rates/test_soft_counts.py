from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from apfex.groups import make_groups, soft_memberships
from apfex.metrics import largest_gap
from apfex.rates import RATES, GroupIndex, RateName, quotient, rate_sums, rates_of, soft_counts
from apfex.relaxations import ccr_step, tanh_step

BINARY: dict[RateName, Callable] = {  # decision s and label y to (counts, meets)
    "dp": lambda s, y: (y in (0, 1), s == 1),
    "tpr": lambda s, y: (y == 1, s == 1),
    "fpr": lambda s, y: (y == 0, s == 1),
    "tnr": lambda s, y: (y == 0, s == 0),
    "fnr": lambda s, y: (y == 1, s == 0),
    "ppv": lambda s, y: (s == 1, y == 1),
    "npv": lambda s, y: (s == 0, y == 0),
    "accuracy": lambda s, y: (True, s == y),
}
names = st.sampled_from(sorted(BINARY))


@st.composite
def rows(draw, n_classes=2, outsiders=True):
    n = draw(st.integers(1, 30))

    def column(low, high):
        return draw(st.lists(st.integers(low, high), min_size=n, max_size=n))

    return (
        torch.tensor(column(0, n_classes - 1)),
        torch.tensor(column(0, n_classes - 1)),
        torch.tensor(column(-1 if outsiders else 0, 3)),
        torch.tensor(column(0, 4), dtype=torch.float64),
    )


def brute_force(name, s, y, codes, weights, k):
    above, below = np.zeros(k), np.zeros(k)
    for decision, label, code, weight in zip(s, y, codes, weights, strict=True):
        counts, meets = BINARY[name](int(decision), int(label))
        if code >= 0 and counts:
            below[code] += weight
            above[code] += weight * meets
    return above, below


def counted(decisions, y, groups, weight=None, *, multiclass=False):
    """Soft counts of labels 0 and 1, or of each class against the rest."""
    index = groups if isinstance(groups, GroupIndex) else GroupIndex.of(groups)
    if multiclass:
        y = (y == torch.arange(decisions.shape[-2])[:, None]).long()
    return soft_counts(decisions, y, index, weight)


def sums_of(name, decisions, y, groups, weight=None, *, multiclass=False):
    counts = counted(decisions, y, groups, weight, multiclass=multiclass)
    return rate_sums(name, counts, multiclass=multiclass)


def assert_sums(sums, above, below):
    for found, expected in zip(sums, (above, below), strict=True):
        assert found.tolist() == pytest.approx(np.asarray(expected))


def test_every_rate_has_an_oracle():
    assert set(BINARY) == set(RATES)


@given(names, rows())
def test_hard_rates_count_rows(name, data):
    s, y, codes, weight = data
    index = GroupIndex.of(codes)
    oracle = brute_force(name, s, y, codes, torch.ones(len(s)), index.n_groups)
    assert_sums(sums_of(name, s.double(), y, codes), *oracle)
    weighted = brute_force(name, s, y, codes, weight, index.n_groups)
    assert_sums(sums_of(name, s.double(), y, codes, weight), *weighted)


@given(names, rows(n_classes=4))
def test_multiclass_rates_take_each_class_against_the_rest(name, data):
    s, y, codes, weight = data
    classes = torch.arange(4)[:, None]
    k = GroupIndex.of(codes).n_groups
    sums = sums_of(name, (s == classes).double(), y, codes, weight, multiclass=True)
    if name == "accuracy":
        oracle = [brute_force(name, s, y, codes, weight, k)]
    else:
        oracle = [brute_force(name, s == c, y == c, codes, weight, k) for c in range(4)]
    assert sums[0].shape == (len(oracle), k)
    for row, (above, below) in enumerate(oracle):
        assert_sums((sums[0][row], sums[1][row]), above, below)


@given(rows(), st.integers(0, 30))
def test_batches_and_workers_add_up(data, cut):
    s, y, codes, weight = data
    k = GroupIndex.of(codes).n_groups
    parts = []
    for part in (slice(None, cut), slice(cut, None)):
        index = GroupIndex(codes[part], None, k, has_outsiders=True)
        parts.append(soft_counts(s[part].double(), y[part], index, weight[part]))
    torch.testing.assert_close(parts[0] + parts[1], counted(s.double(), y, codes, weight))


@given(names, rows(outsiders=False))
def test_codes_memberships_and_groups_agree(name, data):
    s, y, codes, weight = data
    groups = make_groups(codes)
    expected = sums_of(name, s.double(), y, groups, weight)
    codes = torch.from_numpy(groups.codes)
    for form in (codes, torch.nn.functional.one_hot(codes).float(), GroupIndex.of(groups)):
        assert_sums(sums_of(name, s.double(), y, form, weight), *expected)


@pytest.mark.parametrize("name", sorted(BINARY))
@pytest.mark.parametrize("step", ["tanh", "ccr"])
def test_relaxed_rates_tend_to_the_hard_rates(name, step):
    generator = torch.Generator().manual_seed(0)
    scores = torch.rand(200, generator=generator, dtype=torch.float64)
    scores = scores[(scores - 0.5).abs() > 0.01]
    y = torch.randint(0, 2, (len(scores),), generator=generator)
    codes = torch.randint(0, 4, (len(scores),), generator=generator)
    hard = rates_of(name, counted((scores > 0.5).double(), y, codes))
    errors = []
    for sharpness in (5.0, 50.0, 500.0, 5000.0):
        soft = (
            tanh_step(scores, steepness=sharpness)
            if step == "tanh"
            else ccr_step(scores, width=1 / sharpness)
        )
        errors.append((rates_of(name, counted(soft, y, codes)) - hard).abs().max().item())
    assert errors[-1] < 1e-9
    assert errors == sorted(errors, reverse=True)


def test_gradients_flow_through_decisions_memberships_thresholds_and_widths():
    generator = torch.Generator().manual_seed(1)

    def draw(*shape):
        return 0.35 + 0.3 * torch.rand(*shape, generator=generator, dtype=torch.float64)

    decisions, scores = draw(8).requires_grad_(), draw(8, 3).requires_grad_()
    threshold = torch.tensor([0.45, 0.5, 0.55], dtype=torch.float64, requires_grad=True)
    width = torch.tensor([0.3, 0.4, 0.5], dtype=torch.float64, requires_grad=True)
    y = torch.tensor([0, 1] * 4)

    def soft_rates(decisions, scores, threshold, width):
        memberships = soft_memberships(scores, threshold, width)
        counts = counted(decisions, y, memberships)
        return torch.cat([rates_of(name, counts) for name in BINARY])

    assert torch.autograd.gradcheck(soft_rates, (decisions, scores, threshold, width))


def test_an_index_of_learned_memberships_can_be_used_again():
    scores = torch.tensor([[0.4, 0.6], [0.55, 0.45]], dtype=torch.float64, requires_grad=True)
    decisions = torch.tensor([0.2, 0.9], dtype=torch.float64)
    index = GroupIndex.of(soft_memberships(scores))
    y = torch.tensor([0, 1])

    def rates(groups):
        return rates_of("dp", counted(decisions, y, groups)).sum()

    with torch.no_grad():
        rates(index)
    (again,) = torch.autograd.grad(rates(index), scores)
    assert torch.equal(again, torch.autograd.grad(rates(soft_memberships(scores)), scores)[0])


def test_a_group_that_is_not_estimable_has_no_rate_and_a_finite_gradient():
    decisions = torch.tensor([0.2, 0.9, 0.4], requires_grad=True)
    counts = counted(decisions, torch.tensor([1, 1, 0]), torch.tensor([0, 1, 2]))
    rates = rates_of("tpr", counts)
    assert rates.isnan().tolist() == [False, False, True]
    largest_gap(rates[None]).backward()
    assert decisions.grad is not None
    assert decisions.grad.tolist() == pytest.approx([-1.0, 1.0, 0.0])


@pytest.mark.parametrize("kind", [np.array, torch.tensor])
def test_a_quotient_without_rows_is_not_known(kind):
    found = quotient(kind([1.0, 2.0, 0.0]), kind([2.0, 8.0, 0.0]))
    assert found.tolist() == pytest.approx([0.5, 0.25, np.nan], nan_ok=True)


def test_members_and_classes_are_leading_axes():
    generator = torch.Generator().manual_seed(2)
    decisions = torch.rand(2, 5, 3, 40, generator=generator, dtype=torch.float64)
    y = torch.randint(0, 3, (40,), generator=generator)
    codes = torch.randint(-1, 4, (40,), generator=generator)
    for name in BINARY:
        sums = sums_of(name, decisions, y, codes, multiclass=True)
        alone = sums_of(name, decisions[1, 2], y, codes, multiclass=True)
        for every, one in zip(sums, alone, strict=True):
            torch.testing.assert_close(every[1, 2], one)


def test_thousands_of_groups_take_memory_in_proportion_to_rows():
    n = 200_000  # memberships [n, k] would be 40 GB
    codes = torch.arange(n) % 50_000
    above, _ = sums_of("dp", torch.ones(n), torch.zeros(n), codes)
    assert above.shape == (50_000,)
    assert above.unique().tolist() == [4.0]


@pytest.mark.parametrize("form", ["codes", "memberships"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_low_precision_does_not_end_the_count(dtype, form):
    n = 2 * 5_001
    codes = torch.arange(n) % 2
    groups = codes if form == "codes" else torch.nn.functional.one_hot(codes).to(dtype)
    decisions = torch.ones(n, dtype=dtype, requires_grad=True)
    for weight in (None, torch.ones(n, dtype=dtype)):
        counts = soft_counts(decisions, torch.ones(n), GroupIndex.of(groups), weight)
        assert counts.dtype == max(dtype, torch.float32, key=lambda one: one.itemsize)
        assert counts.tolist() == [[0, 5_001, 0, 5_001]] * 2
    (gradient,) = torch.autograd.grad(counts[0, 1], decisions)
    assert gradient.dtype == dtype
    assert gradient.sum(dtype=torch.float64) == 5_001


@pytest.mark.parametrize("classes", [False, True])
@pytest.mark.parametrize("form", ["codes", "memberships"])
def test_weights_of_members_are_those_of_each_alone(form, classes):
    b, n = 3, 40
    codes, y = torch.arange(n) % 4, torch.arange(n) % 3
    groups = codes if form == "codes" else torch.nn.functional.one_hot(codes).double()
    index, labels = GroupIndex.of(groups), torch.nn.functional.one_hot(y).T if classes else y % 2
    decisions = torch.rand(b, *labels.shape, dtype=torch.float64)
    weight = torch.rand(b, *[1] * classes, n, dtype=torch.float64)
    together = soft_counts(decisions, labels, index, weight)
    for member in range(b):
        alone = soft_counts(decisions[member], labels, index, weight[member].flatten())
        torch.testing.assert_close(together[member], alone)


@pytest.mark.parametrize(
    ("groups", "error", "message"),
    [
        ([0, 1], TypeError, "groups must be Groups.*got list"),
        (torch.tensor([0.0, 1.0]), ValueError, "integer codes.*got torch.float32"),
        (torch.tensor([[0, 1]]), ValueError, r"shape \[1, 2\]"),
        (torch.tensor([0, -2]), ValueError, "-1 for none, got -2"),
        (torch.tensor([[0.5, -0.1]]), ValueError, "finite and at least 0, got -0.1"),
        (torch.tensor([[0.5, torch.nan]]), ValueError, "finite and at least 0, got nan"),
        (torch.tensor([[torch.inf, 0.5]]), ValueError, "finite and at least 0, got inf"),
    ],
)
def test_bad_groups_are_named(groups, error, message):
    with pytest.raises(error, match=message):
        GroupIndex.of(groups)


def test_groups_of_another_length_are_refused():
    with pytest.raises(ValueError, match=r"one entry per row \(3\), got 2"):
        GroupIndex.of(torch.tensor([0, 1]), n=3)
    assert GroupIndex.of(torch.tensor([], dtype=torch.long)).n_groups == 0


def test_rows_in_no_group_count_nowhere():
    index = GroupIndex.of(torch.tensor([-1, 0, -1]))
    assert index.sum(torch.tensor([5.0, 1.0, 7.0])).tolist() == [1.0]
    only = GroupIndex.of(torch.tensor([-1, -1]))
    assert only.sum(torch.tensor([5.0, 1.0])).tolist() == []


def test_inputs_stay_untouched():
    s, y, codes = torch.tensor([1.0, 0.0]), torch.tensor([1, 0]), torch.tensor([0, -1])
    copies = s.clone(), y.clone(), codes.clone()
    counted(s, y, codes, torch.ones(2))
    assert all(torch.equal(a, b) for a, b in zip((s, y, codes), copies, strict=True))


def test_rates_of_small_weights_are_rates():
    kinds: tuple[Any, ...] = (np.array, torch.tensor)
    for kind in kinds:
        found = quotient(kind([0.1, 0.0, 3.0]), kind([0.4, 0.0, 4.0]))
        np.testing.assert_allclose(found, [0.25, np.nan, 0.75])

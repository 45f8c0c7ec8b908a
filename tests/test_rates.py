from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from apfex.groups import make_groups, soft_memberships
from apfex.rates import RATES, GroupIndex, RateName, RateSums, gap, group_masses, rate_sums
from apfex.rates._add_up import _by_products, _InFixedOrder, add_up
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


def assert_sums(sums, above, below):
    assert sums.numerator.tolist() == pytest.approx(np.asarray(above))
    assert sums.denominator.tolist() == pytest.approx(np.asarray(below))


def test_every_rate_has_an_oracle():
    assert set(BINARY) == set(RATES)


@given(names, rows())
def test_hard_rates_count_rows(name, data):
    s, y, codes, weight = data
    index = GroupIndex.of(codes)
    oracle = brute_force(name, s, y, codes, torch.ones(len(s)), index.n_groups)
    assert_sums(rate_sums(name, s.double(), y, codes), *oracle)
    weighted = brute_force(name, s, y, codes, weight, index.n_groups)
    assert_sums(rate_sums(name, s.double(), y, codes, weight), *weighted)


@given(names, rows(n_classes=4))
def test_multiclass_rates_take_each_class_against_the_rest(name, data):
    s, y, codes, weight = data
    classes = torch.arange(4)[:, None]
    k = GroupIndex.of(codes).n_groups
    sums = rate_sums(name, (s == classes).double(), y, codes, weight, multiclass=True)
    if name == "accuracy":
        oracle = [brute_force(name, s, y, codes, weight, k)] * 4
    else:
        oracle = [brute_force(name, s == c, y == c, codes, weight, k) for c in range(4)]
    assert sums.numerator.shape == (4, k)
    for row, (above, below) in enumerate(oracle):
        assert_sums(RateSums(sums.numerator[row], sums.denominator[row]), above, below)


def test_several_rates_are_summed_in_one_go():
    generator = torch.Generator().manual_seed(3)
    decisions = torch.rand(2, 3, 40, generator=generator, dtype=torch.float64)
    y = torch.randint(0, 3, (40,), generator=generator)
    codes = torch.randint(-1, 4, (40,), generator=generator)
    for weight in (None, torch.rand(40, generator=generator)):
        together = rate_sums(tuple(BINARY), decisions, y, codes, weight, multiclass=True)
        for row, name in enumerate(BINARY):
            alone = rate_sums(name, decisions, y, codes, weight, multiclass=True)
            torch.testing.assert_close(together.numerator[row], alone.numerator)
            torch.testing.assert_close(together.denominator[row], alone.denominator)


@given(names, rows(), st.integers(0, 30))
def test_batches_and_workers_add_up(name, data, cut):
    s, y, codes, weight = data
    k = GroupIndex.of(codes).n_groups
    parts = []
    for part in (slice(None, cut), slice(cut, None)):
        index = GroupIndex(codes[part], None, k, has_outsiders=True)
        parts.append(rate_sums(name, s[part].double(), y[part], index, weight[part]))
    whole = rate_sums(name, s.double(), y, codes, weight)
    assert_sums(parts[0] + parts[1], whole.numerator, whole.denominator)
    assert_sums(parts[1] + parts[0], whole.numerator, whole.denominator)


@given(names, rows(outsiders=False))
def test_codes_memberships_and_groups_agree(name, data):
    s, y, codes, weight = data
    groups = make_groups(codes)
    expected = rate_sums(name, s.double(), y, groups, weight)
    for form in (torch.from_numpy(groups.codes), groups.memberships(), GroupIndex.of(groups)):
        assert_sums(
            rate_sums(name, s.double(), y, form, weight), expected.numerator, expected.denominator
        )


@given(names, rows(), st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_sums_of_parents_are_regrouped_sums_of_cells(name, data, random):
    s, y, codes, _ = data
    table = {"a": [random.choice("xyz") for _ in s], "b": [random.choice("uv") for _ in s]}
    table["c"] = codes.tolist()
    groups = make_groups(table)
    cells = rate_sums(name, s.double(), y, groups)
    for parent in groups.parents():
        parent_codes = torch.from_numpy(groups.parent_codes(parent.attributes))
        expected = rate_sums(name, s.double(), y, parent)
        regrouped = cells.regroup(parent_codes, len(parent))
        assert_sums(regrouped, expected.numerator, expected.denominator)


@given(names, rows(outsiders=False), st.integers(0, 2**31))
@settings(max_examples=40)
def test_crossing_gap_is_at_least_each_marginal_gap(name, data, seed):
    s, y, codes, _ = data
    other = np.random.default_rng(seed).integers(0, 2, len(s))
    groups = make_groups({"a": codes, "b": other})
    cells = rate_sums(name, s.double(), y, groups)
    if not cells.estimable().all():
        return  # it need not hold once cells are left out
    for parent in groups.parents():
        marginal = gap(rate_sums(name, s.double(), y, parent).rates())
        assert marginal.isnan() or gap(cells.rates()) >= marginal - 1e-12


@pytest.mark.parametrize("name", sorted(BINARY))
@pytest.mark.parametrize("step", ["tanh", "ccr"])
def test_relaxed_rates_tend_to_the_hard_rates(name, step):
    generator = torch.Generator().manual_seed(0)
    scores = torch.rand(200, generator=generator, dtype=torch.float64)
    scores = scores[(scores - 0.5).abs() > 0.01]
    y = torch.randint(0, 2, (len(scores),), generator=generator)
    codes = torch.randint(0, 4, (len(scores),), generator=generator)
    hard = rate_sums(name, (scores > 0.5).double(), y, codes).rates()
    errors = []
    for sharpness in (5.0, 50.0, 500.0, 5000.0):
        soft = (
            tanh_step(scores, steepness=sharpness)
            if step == "tanh"
            else ccr_step(scores, width=1 / sharpness)
        )
        errors.append((rate_sums(name, soft, y, codes).rates() - hard).abs().max().item())
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
        return torch.cat([rate_sums(name, decisions, y, memberships).rates(0.0) for name in BINARY])

    assert torch.autograd.gradcheck(soft_rates, (decisions, scores, threshold, width))


def test_an_index_of_learned_memberships_can_be_used_again():
    scores = torch.tensor([[0.4, 0.6], [0.55, 0.45]], dtype=torch.float64, requires_grad=True)
    decisions = torch.tensor([0.2, 0.9], dtype=torch.float64)
    index = GroupIndex.of(soft_memberships(scores))
    with torch.no_grad():
        rate_sums("dp", decisions, None, index)
    (again,) = torch.autograd.grad(rate_sums("dp", decisions, None, index).rates(0).sum(), scores)
    fresh = rate_sums("dp", decisions, None, soft_memberships(scores)).rates(0).sum()
    assert torch.equal(again, torch.autograd.grad(fresh, scores)[0])


def test_a_group_that_is_not_estimable_has_no_rate_and_a_finite_gradient():
    decisions = torch.tensor([0.2, 0.9, 0.4], requires_grad=True)
    sums = rate_sums("tpr", decisions, torch.tensor([1, 1, 0]), torch.tensor([0, 1, 2]))
    rates = sums.rates()
    assert rates.isnan().tolist() == [False, False, True]
    assert sums.estimable().tolist() == [True, True, False]
    gap(rates).backward()
    assert decisions.grad is not None
    assert decisions.grad.tolist() == pytest.approx([-1.0, 1.0, 0.0])


def test_a_small_denominator_is_left_out_by_the_minimum_asked_for():
    sums = RateSums(torch.tensor([1.0, 2.0, 0.0]), torch.tensor([2.0, 8.0, 0.0]))
    assert sums.rates(5).isnan().tolist() == [True, False, True]
    assert gap(sums.rates(5)).isnan()
    assert sums.rates(0).isnan().tolist() == [False, False, True]
    assert gap(sums.rates()).item() == 0.25


def test_members_and_classes_are_leading_axes():
    generator = torch.Generator().manual_seed(2)
    decisions = torch.rand(2, 5, 3, 40, generator=generator, dtype=torch.float64)
    y = torch.randint(0, 3, (40,), generator=generator)
    codes = torch.randint(-1, 4, (40,), generator=generator)
    for name in BINARY:
        sums = rate_sums(name, decisions, y, codes, multiclass=True)
        alone = rate_sums(name, decisions[1, 2], y, codes, multiclass=True)
        torch.testing.assert_close(sums.numerator[1, 2], alone.numerator)
        torch.testing.assert_close(sums.denominator[1, 2], alone.denominator)


def test_thousands_of_groups_take_memory_in_proportion_to_rows():
    n = 200_000  # memberships [n, k] would be 40 GB
    codes = torch.arange(n) % 50_000
    sums = rate_sums("dp", torch.ones(n), None, codes)
    assert sums.numerator.shape == (50_000,)
    assert sums.numerator.unique().tolist() == [4.0]


@pytest.mark.parametrize("form", ["codes", "memberships"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_low_precision_does_not_end_the_count(dtype, form):
    n = 2 * 5_001
    codes = torch.arange(n) % 2
    groups = codes if form == "codes" else torch.nn.functional.one_hot(codes).to(dtype)
    decisions = torch.ones(n, dtype=dtype, requires_grad=True)
    for weight in (None, torch.ones(n, dtype=dtype)):
        masses = group_masses(decisions, torch.ones(n), GroupIndex.of(groups), weight)
        assert masses.dtype == max(dtype, torch.float32, key=lambda one: one.itemsize)
        assert masses.tolist() == [[0, 5_001, 0, 5_001]] * 2
    (gradient,) = torch.autograd.grad(masses[0, 1], decisions)
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
    together = group_masses(decisions, labels, index, weight)
    for member in range(b):
        alone = group_masses(decisions[member], labels, index, weight[member].flatten())
        torch.testing.assert_close(together[member], alone)


@pytest.mark.parametrize("name", sorted(BINARY))
def test_hard_decisions_may_be_booleans_or_integers(name):
    scores, y = torch.tensor([0.5, -1.0, 2.0, 0.1]), torch.tensor([1, 0, 0, 1])
    codes, weight = torch.tensor([0, 0, 1, 1]), torch.tensor([1, 2, 3, 4])
    expected = rate_sums(name, (scores > 0).double(), y, codes, weight)
    for decisions in (scores > 0, (scores > 0).int()):
        for labels in (y, y > 0, y.float()):
            sums = rate_sums(name, decisions, labels, codes, weight)
            assert sums.numerator.dtype == torch.float64
            assert_sums(sums, expected.numerator, expected.denominator)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "auc"}, r"name must be one or more of \['dp', .*, got \['auc'\]"),
        ({"name": ("dp", "auc")}, r"got \['auc'\]"),
        ({"name": ()}, r"name must be one or more of .*, got \(\)"),
        ({"decisions": torch.tensor(1.0)}, r"decisions must have shape \[..., n\], got \[\]"),
        ({"multiclass": True}, r"decisions must have shape \[..., c, n\], got \[3\]"),
        ({"y": torch.ones(2)}, r"y must have one entry per row of decisions \(3\), got shape \[2"),
        ({"y": torch.ones(1, 3)}, r"y must have one entry .* got shape \[1, 3\]"),
        ({"groups": torch.tensor([0, 1])}, r"groups must have one entry .* \(3\), got shape \[2\]"),
        ({"groups": torch.ones(4, 2)}, r"groups must have one entry .* \(3\), got shape \[4\]"),
        ({"sample_weight": torch.ones(1)}, r"sample_weight must have one .* got shape \[1\]"),
        ({"y": torch.tensor([0, 2, 1])}, "y must hold labels from 0 to 1, got 2"),
        ({"y": torch.tensor([0, -1, 1])}, "y must hold labels from 0 to 1, got -1"),
        ({"y": torch.tensor([0, 0.5, 1])}, "y must hold labels from 0 to 1, got 0.5"),
        ({"y": torch.tensor([0, torch.nan, 1])}, "y must hold labels from 0 to 1, got nan"),
        (
            {"y": torch.tensor([0, 3, 1]), "decisions": torch.ones(3, 3), "multiclass": True},
            "y must hold labels from 0 to 2, got 3",
        ),
    ],
)
def test_bad_rows_are_named(change, message):
    call: dict[str, Any] = {
        "name": "tpr",
        "decisions": torch.ones(3),
        "y": torch.tensor([0, 1, 1]),
        "groups": torch.tensor([0, 1, 1]),
    }
    with pytest.raises(ValueError, match=message):
        rate_sums(**call | change)


def test_dp_needs_no_labels_and_other_rates_say_that_they_do():
    assert rate_sums("dp", torch.ones(2), None, torch.tensor([0, 1])).rates().tolist() == [1, 1]
    with pytest.raises(ValueError, match="y must be given for the rate 'tpr', got None"):
        rate_sums("tpr", torch.ones(2), None, torch.tensor([0, 1]))


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
    rate_sums("accuracy", s, y, codes, torch.ones(2))
    assert all(torch.equal(a, b) for a, b in zip((s, y, codes), copies, strict=True))


@pytest.mark.parametrize("bad", [1.5, -0.1, float("nan")])
def test_decisions_that_are_no_decisions_are_refused(bad):
    decisions = torch.tensor([0.0, 1.0, bad, 1.0])
    with pytest.raises(ValueError, match="decisions must be between 0 and 1, got"):
        rate_sums("dp", decisions, None, torch.tensor([0, 0, 1, 1]))
    with pytest.raises(ValueError, match="sample_weight must be at least 0, got -1"):
        rate_sums("dp", torch.ones(2), None, torch.tensor([0, 1]), torch.tensor([1.0, -1.0]))


@given(rows(n_classes=3), st.integers(1, 3), st.booleans())
def test_products_and_index_add_give_the_same_sums(data, members, by_class):
    """What a CUDA device computes by products is what others add up."""
    codes = data[2].clamp_min(0)
    codes = torch.stack([codes, codes.flip(0)]) if by_class else codes
    values = torch.rand(members, *codes.shape)
    torch.testing.assert_close(_by_products(values, codes, 4), add_up(values, codes, 4))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_products_do_not_end_the_count_in_half_precision(dtype, monkeypatch):
    values, codes = torch.ones(2, 8_192, dtype=dtype), torch.arange(8_192) % 2
    monkeypatch.setattr("apfex.rates._add_up._BLOCK", 2_000)  # several blocks
    with torch.autocast("cpu", torch.bfloat16):
        assert _by_products(values, codes, 2).tolist() == [[4_096.0] * 2] * 2
        odd = _by_products(torch.ones(8_192), (torch.arange(8_192) < 4_097).long(), 2)
    assert odd.tolist() == [4_095.0, 4_097.0]  # neither is a number in bfloat16


@pytest.mark.parametrize("by_class", [False, True])
def test_gradients_of_products_are_those_of_index_add(by_class):
    codes = torch.tensor([[0, 2, 1, 2], [1, 1, 0, 2]]) if by_class else torch.tensor([0, 2, 1, 2])
    weight = torch.rand(3, *codes.shape[:-1], 3, dtype=torch.float64)
    values = torch.rand(3, *codes.shape, dtype=torch.float64, requires_grad=True)
    expected = torch.autograd.grad((add_up(values, codes, 3) * weight).sum(), values)[0]
    sums: Any = _InFixedOrder.apply(values, codes, 3)
    torch.testing.assert_close(torch.autograd.grad((sums * weight).sum(), values)[0], expected)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("size", [3, 700], ids=["few groups", "blocks of rows"])
@pytest.mark.parametrize("by_class", [False, True])
def test_a_device_gives_the_same_bits_twice(size, by_class):
    values = torch.rand(8, 2, 40_000) if by_class else torch.rand(8, 40_000)
    codes = torch.randint(size, (2, 40_000) if by_class else (40_000,))
    there = [add_up(values.cuda(), codes.cuda(), size) for _ in range(20)]
    assert all(torch.equal(sums, there[0]) for sums in there)
    exact = add_up(values.double(), codes, size)
    torch.testing.assert_close(there[0].cpu().double(), exact, rtol=1e-5, atol=0)

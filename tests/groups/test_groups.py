import warnings
from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import one_hot

from apfex.groups import Groups, UnseenGroupWarning, make_groups, soft_memberships
from apfex.rates import GroupIndex

levels = st.sampled_from(["a", "b", "c", None])


@st.composite
def tables(draw):
    n = draw(st.integers(1, 25))
    names = ["sex", "race", "age"][: draw(st.integers(1, 3))]
    return {name: draw(st.lists(levels, min_size=n, max_size=n)) for name in names}


def rows_of(table):
    return list(zip(*table.values(), strict=True))


@given(tables())
def test_rows_share_a_group_exactly_when_they_share_all_levels(table):
    groups = make_groups(table)
    rows = rows_of(table)
    assert len(groups) == len(set(rows))
    assert len(set(zip(rows, groups.codes.tolist(), strict=True))) == len(groups)
    assert groups.counts.tolist() == np.bincount(groups.codes).tolist()
    assert groups.counts.min() > 0


@given(tables())
def test_names_say_the_level_of_every_attribute(table):
    groups = make_groups(table)
    for row, code in zip(rows_of(table), groups.codes, strict=True):
        shown = ("<missing>" if level is None else level for level in row)
        parts = [f"{name}={level}" for name, level in zip(table, shown, strict=True)]
        assert groups.names[code] == ", ".join(parts)


@given(tables())
def test_encoding_the_same_rows_gives_the_same_codes(table):
    groups = make_groups(table)
    assert groups.encode(table).tolist() == groups.codes.tolist()
    backwards = {name: column[::-1] for name, column in table.items()}
    assert groups.encode(backwards).tolist() == groups.codes[::-1].tolist()


@given(tables())
@settings(max_examples=40)
def test_every_parent_is_the_grouping_by_fewer_attributes(table):
    groups = make_groups(table)
    coarser = [names for size in range(1, len(table)) for names in combinations(table, size)]
    for attributes in coarser:
        parent = groups.parent(attributes)
        direct = make_groups({name: table[name] for name in attributes})
        assert parent.codes.tolist() == direct.codes.tolist()
        assert parent.names == direct.names
        assert groups.parent_codes(attributes)[groups.codes].tolist() == direct.codes.tolist()
        assert parent.encode({name: table[name] for name in attributes}).tolist() == (
            direct.codes.tolist()
        )


@given(tables())
@settings(max_examples=40)
def test_frames_mappings_and_arrays_agree(table):
    expected = make_groups(table)
    nested = [list(row) for row in rows_of(table)]
    forms = [
        pd.DataFrame(table, index=[7] * len(nested)),
        pd.DataFrame(table).astype("category"),
        pl.DataFrame(table, schema=dict.fromkeys(table, pl.String)),
        pl.DataFrame(table, schema=dict.fromkeys(table, pl.Categorical)),
        {name: np.array(column, dtype=object) for name, column in table.items()},
        {name: pl.Series(column, dtype=pl.String) for name, column in table.items()},
    ]
    for form in forms:
        groups = make_groups(form)
        assert groups.codes.tolist() == expected.codes.tolist()
        assert groups.names == expected.names
        assert expected.encode(form).tolist() == expected.codes.tolist()
    for form in (nested, np.array(nested, dtype=object)):
        groups = make_groups(form)
        assert groups.codes.tolist() == expected.codes.tolist()
        assert groups.attributes == tuple(f"attribute{j}" for j in range(len(table)))


@given(st.lists(st.integers(-2, 3), min_size=1, max_size=20))
@settings(max_examples=40)
def test_columns_of_numbers_agree_in_every_form(values):
    expected = make_groups(values)
    assert expected.names == tuple(f"attribute0={value}" for value in sorted(set(values)))
    for form in (
        np.array(values),
        np.array(values, dtype=float),
        torch.tensor(values),
        torch.tensor(values, dtype=torch.float32)[:, None],
        pd.Series(values),
        pd.Series(values, dtype="Int64"),
        pl.Series(values),
        tuple(values),
    ):
        groups = make_groups(form)
        assert groups.codes.tolist() == expected.codes.tolist()
        assert groups.names == expected.names
        assert expected.encode(form).tolist() == expected.codes.tolist()


def test_booleans_dates_and_mixed_values_are_levels():
    assert make_groups([True, False]).names == ("attribute0=False", "attribute0=True")
    assert make_groups(pd.to_datetime(["2020-01-02", "2020-01-01"])).codes.tolist() == [1, 0]
    assert make_groups([b"a", b"bc"]).codes.tolist() == [0, 1]
    mixed = make_groups(["a", 1, None, 2.5])
    assert len(mixed) == 4
    assert mixed.encode(["a", 1, None, 2.5]).tolist() == mixed.codes.tolist()


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT, float("nan")])
def test_a_missing_value_is_one_level_of_its_own_and_comes_last(missing):
    groups = make_groups({"sex": ["M", missing, "F", missing]})
    assert groups.names == ("sex=F", "sex=M", "sex=<missing>")
    assert groups.codes.tolist() == [1, 2, 0, 2]
    assert groups.encode({"sex": [None, np.nan]}).tolist() == [2, 2]


def test_a_missing_number_does_not_change_the_names_of_the_others():
    assert make_groups([1.0, np.nan, 0.0]).names == (
        "attribute0=0",
        "attribute0=1",
        "attribute0=<missing>",
    )
    assert make_groups([np.nan, np.nan]).names == ("attribute0=<missing>",)


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        ([1, "1", "2", 2], "got 1 and '1' in 'code'; write them alike, as by astype"),
        ([2.0, "2"], "got 2.0 and '2' in 'code'"),
        (pd.Categorical([True, "True"]), "got True and 'True' in 'code'"),
        (["<missing>", None], "got '<missing>' beside missing values in 'code'; give one of them"),
    ],
)
def test_two_groups_never_have_one_name(levels, words):
    with pytest.raises(ValueError, match=f"sensitive_features must have levels .*{words}"):
        make_groups(pd.Series(np.asarray(levels, dtype=object), name="code"))


@pytest.mark.parametrize("levels", [[True, 1, 0], ["a", False, 0.0], [1, np.True_, None]])
def test_a_truth_value_is_no_number(levels):
    truth, number = ("False", "0.0") if "a" in levels else ("True", "1")
    column = pd.Series(levels, dtype=object, name="code")
    with pytest.raises(ValueError, match=f"as text, got {truth} and {number} in 'code'; write"):
        make_groups(column)
    assert len(make_groups(column.astype(str))) == 3


def test_levels_that_are_shown_apart_stay():
    assert len(make_groups([1, "1.0", "01", False, "<missing>", " 1", "'1'"])) == 7


def test_names_stay_apart_where_levels_hold_separators():
    table = {"a": ["x, b=y", "x"], "b": ["z", "y, b=z"]}
    assert len(set(make_groups(table).names)) == 2


def test_unseen_cells_are_minus_one_and_counted_in_a_warning():
    groups = make_groups({"sex": ["F", "M"], "race": ["B", "W"]})
    new = {"race": ["W", "B", "W", None], "sex": ["F", "F", "X", "M"]}
    with pytest.warns(UnseenGroupWarning, match="3 of 4 rows.*'sex=F, race=W'"):
        codes = groups.encode(new)
    assert codes.tolist() == [-1, 0, -1, -1]


def test_a_level_or_row_after_an_unseen_one_is_still_found():
    groups = make_groups({"a": ["x", "y"], "b": ["x", "y"], "c": ["x", "y"]})
    with pytest.warns(UnseenGroupWarning):
        codes = groups.encode({"a": ["x", "y", "x"], "b": ["y", "y", "x"], "c": ["y", "y", "x"]})
    assert codes.tolist() == [-1, 1, 0]


def test_groups_are_passed_through_and_rows_may_belong_to_none():
    groups = make_groups({"sex": ["F", "M"], "race": ["B", "W"]})
    assert make_groups(groups) is groups
    partly = Groups(
        np.array([0, -1, 1]), groups.attributes, groups.levels, groups.cells, groups._keys
    )
    assert partly.counts.tolist() == [1, 1]
    assert partly.parent("sex").codes.tolist() == [0, -1, 1]
    assert GroupIndex.of(partly).sum(torch.ones(3)).tolist() == [1, 1]


def test_ten_attributes_with_thousands_of_cells_need_no_full_crossing():
    generator = np.random.default_rng(0)
    # The full crossing has 12^10 = 6e10 cells, far more than memory.
    values = generator.integers(0, 12, (30_000, 10)) * (generator.random((30_000, 10)) < 0.25)
    groups = make_groups(values)
    distinct, inverse = np.unique(values, axis=0, return_inverse=True)
    assert len(groups) == len(distinct) > 5_000
    assert groups.codes.tolist() == inverse.ravel().tolist()
    assert groups.encode(values[:500]).tolist() == groups.codes[:500].tolist()
    assert groups.cells.shape == (len(groups), 10)
    assert len(groups.parent(["attribute0", "attribute9"])) == 144
    assert sum(key.size for key in groups._keys) <= 10 * len(groups)


def test_crossing_many_levels_does_not_overflow():
    values = np.arange(3_000)[:, None].repeat(8, axis=1)
    groups = make_groups(values)
    assert len(groups) == 3_000
    assert groups.encode(values).tolist() == list(range(3_000))


def test_inputs_stay_untouched():
    frame = pd.DataFrame({"sex": ["F", None]}, index=[3, 9])
    before = frame.copy()
    make_groups(frame).encode(frame)
    pd.testing.assert_frame_equal(frame, before)


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        ({"a": [1, 2], "b": [1]}, ValueError, "columns of one length, got {'a': 2, 'b': 1}"),
        ({}, ValueError, "at least one attribute"),
        ([], ValueError, "at least one row, got 0"),
        (np.zeros((2, 2, 2)), ValueError, r"one or two dimensions, got shape \(2, 2, 2\)"),
        ("sex", TypeError, "column, a table, or a mapping.*got str"),
        (3, TypeError, "got int"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), ValueError, r"distinct.*\['a'\] twice"),
        ({1: ["a"], "1": ["b"]}, ValueError, r"distinct.*\['1'\] twice; rename one"),
        ([["F", "B"], ["M"]], ValueError, "rows of one length, got rows of 1 and 2 values"),
        ([["F", "B"], "M"], ValueError, "rows of 1 and 2 values"),
        ({"a": [["F"], ["M", "B"]]}, ValueError, "rows of one length"),
        ({"a": [["F"], ["M"]]}, ValueError, r"one value per row .* got shape \(2, 1\)"),
        ({"a": np.zeros((2, 1))}, ValueError, "one value per row in each column"),
        (pd.DataFrame({"a": [["F"], ["M", "B"]]}), ValueError, "single values .* got a list"),
        ([["F"], "M"], ValueError, "single values in each column, got a list"),
        ([["F", ["B"]], ["M", "W"]], ValueError, "single values in each column, got a list"),
    ],
)
def test_bad_sensitive_features_are_named(bad, error, message):
    with pytest.raises(error, match=message):
        make_groups(bad)


def test_columns_in_another_order_are_refused():
    sex = pd.Series(["F", "M", "M"], name="sex")
    race = pd.Series(["A", "B", "B"], index=[2, 1, 0])
    with pytest.raises(ValueError, match=r"\['race'\] must have the index of .*\['sex'\]"):
        make_groups({"sex": sex, "race": race})
    assert len(make_groups({"sex": sex, "race": race.to_numpy()})) == 2
    with pytest.raises(ValueError, match="must have the index of"):
        make_groups({"sex": ["F", "M", "M"], "race": race, "age": sex})


def test_encoding_other_attributes_is_refused():
    groups = make_groups({"sex": ["F"], "race": ["B"]})
    for other in ({"sex": ["F"]}, {"sex": ["F"], "age": ["B"]}, ["F"]):
        with pytest.raises(ValueError, match=r"attributes \['sex', 'race'\]"):
            groups.encode(other)
    for subset in ("age", [], ["sex", "sex"]):
        with pytest.raises(ValueError, match=r"selection of \['sex', 'race'\]"):
            groups.parent(subset)


@given(tables())
def test_hard_memberships_are_their_own_soft_ones(table):
    groups = make_groups(table)
    memberships = one_hot(torch.from_numpy(groups.codes)).float()
    assert torch.equal(soft_memberships(memberships), memberships)


def test_gradients_flow_through_soft_memberships():
    generator = torch.Generator().manual_seed(0)
    # Away from the corners of the ramp, where there is no gradient to check.
    scores = 0.35 + 0.3 * torch.rand(6, 3, generator=generator, dtype=torch.float64)
    threshold = torch.tensor([0.4, 0.5, 0.6], dtype=torch.float64, requires_grad=True)
    width = torch.tensor([0.3, 0.4, 0.5], dtype=torch.float64, requires_grad=True)
    scores.requires_grad_()
    assert torch.autograd.gradcheck(soft_memberships, (scores, threshold, width))
    (gradient,) = torch.autograd.grad(soft_memberships(scores, threshold, width).sum(), width)
    assert (gradient != 0).all()


def test_soft_memberships_use_the_threshold_and_width_of_each_group():
    scores = torch.tensor([[0.4, 0.4]])
    soft = soft_memberships(scores, torch.tensor([0.4, 0.3]), torch.tensor([0.1, 0.2]))
    assert soft.tolist() == [[0.5, pytest.approx(0.75)]]


def test_soft_memberships_refuse_wrong_shapes():
    with pytest.raises(ValueError, match=r"scores must have shape \[n, k\], got \[3\]"):
        soft_memberships(torch.zeros(3))
    with pytest.raises(ValueError, match=r"width must be .* 2 groups, got shape \[3\]"):
        soft_memberships(torch.zeros(4, 2), 0.5, torch.ones(3))


def test_nothing_warns_where_all_cells_are_known():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_groups(["F", "M"]).encode(["M"])


def test_some_rows_keep_empty_groups_unless_these_are_dropped():
    people = pd.DataFrame({"sex": ["F", "M", "F", None], "race": ["a", "b", "b", "a"]})
    groups, rows = make_groups(people), np.array([2, 0])
    assert groups.take(rows).names == groups.names
    wanted = make_groups(people.iloc[rows])
    found = groups.take(rows, drop_empty=True)
    assert (found.names, found.codes.tolist()) == (wanted.names, wanted.codes.tolist())
    assert [list(levels) for levels in found.levels] == [list(levels) for levels in wanted.levels]
    whole = groups.take(np.arange(4)[::-1], drop_empty=True)
    assert whole.names == groups.names
    assert whole.codes.tolist() == groups.codes[::-1].tolist()

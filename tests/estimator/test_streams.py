"""``fit`` on streams: the same front as in memory, from every source, and clear refusals."""
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false
# pyright: reportGeneralTypeIssues=false

import warnings
from decimal import Decimal
from itertools import count

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import torch
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from apfex import APFExClassifier, load, make_biased
from apfex.estimator._stream_inputs import OpenedStream
from apfex.streams import StreamSettings, open_files, open_stream

N = 6_000
SENSITIVE = ["sex", "origin"]
TREES = {"model": "boosting", "n_estimators": 10}


@pytest.fixture(scope="module")
def data():
    return make_biased(n=N, random_state=0)


@pytest.fixture(scope="module")
def table(data):
    weight = np.random.default_rng(0).exponential(size=N) + 0.1
    return data.X.assign(hired=data.y, weight=weight, **dict(data.sensitive))


@pytest.fixture(scope="module")
def folder(tmp_path_factory, table):
    home = tmp_path_factory.mktemp("parquet")
    ordered = table.drop(columns="weight").sort_values(["hired", *SENSITIVE])  # the worst order
    for place, part in enumerate(np.array_split(np.arange(N), 3)):
        ordered.iloc[part].to_parquet(home / f"{place}.parquet")
    return home


def classifier(**given):
    usual = {"model": "linear", "epochs": 3, "bins": None, "max_gap": 1.0, "n_members": 8}
    return APFExClassifier(**{**usual, "random_state": 0, **given})


@pytest.fixture(scope="module")
def fitted(folder):
    return classifier().fit(folder, y="hired", sensitive_features=SENSITIVE)


def least_error(clf, within=np.inf):
    frame = clf.front_.to_frame()
    return frame["error"][frame["dp_gap"] <= within].min()


def test_the_front_is_that_of_the_rows_in_memory(fitted, data):
    """Both are chosen by 1,200 validation rows of their own: within three standard errors."""
    inside = classifier().fit(data.X, data.y, sensitive_features=data.sensitive)
    new = make_biased(n=20_000, random_state=1)
    for bound in (np.inf, 0.1):
        errors = []
        for clf in (fitted, inside):
            points = clf.front_.to_frame()
            usable = np.flatnonzero(points["dp_gap"] <= bound)
            errors.append((clf.at(int(usable[0])).predict(new.X) != new.y).mean())
        assert abs(errors[0] - errors[1]) < 0.03
    assert len(fitted.front_) >= 5
    assert fitted.front_[0].n_rows == pytest.approx(0.2 * N, abs=10)
    assert fitted.classes_.tolist() == [0, 1]
    assert fitted.feature_names_in_.tolist() == list(data.X.columns)
    assert fitted.front_[0].counts.groups.names == inside.front_[0].counts.groups.names
    assert fitted.history_ is not None


def test_figures_of_points_are_those_of_their_rows(fitted, data, tmp_path):
    """Counts of validation rows, not of others: models, decided again, give the same error."""
    assert fitted.front_[0].error < 0.3
    sure = fitted.front_[0].counts.rows.sum()
    assert sure > 0
    settled = clone(fitted).set_params(streaming=StreamSettings(rule_rows=5_000))
    settled.fitted_, settled.point_ = fitted.fitted_, fitted.point_
    again = load(settled.save(tmp_path / "model"))
    assert again.streaming == settled.streaming
    assert np.array_equal(again.predict(data.X), fitted.predict(data.X))
    assert np.array_equal(fitted.decide_all(data.X), again.decide_all(data.X))
    assert fitted.select(max_gap=0.5).predict_proba(data.X).shape == (N, 2)


def test_labels_of_validation_rows_do_not_shape_the_inputs(folder):
    """Bins are chosen by labels: by those of rows that learn alone."""
    from apfex.estimator._stream_inputs import OpenedStream
    from apfex.front._dealing import Dealer
    from apfex.streams import open_stream

    settings = StreamSettings(chunk_rows=500)
    opened = OpenedStream.of(
        open_stream(folder, folder),
        ("hired", SENSITIVE, None),
        settings,
        sensitive=None,
        include_sensitive=False,
        grouping="intersectional",
    )
    rows = opened.rows
    sample = rows.training_sample(Dealer(rows.facts.counts, 0.2, 10**6, 5, 3))
    dealer = Dealer(rows.facts.counts, 0.2, 10**6, 5, 3)
    learning = [frame[~dealer.deal(strata)[0]] for frame, strata, _ in rows.read()]
    expected = pd.concat([frame.astype({"town": object}) for frame in learning])
    assert sample.X["merit_1"].tolist() == expected["merit_1"].tolist()


def test_a_small_stream_is_fitted_as_its_table(tmp_path, data):
    """Below 5,000 rows each has its turn to choose, which takes them all."""
    small = np.arange(1_000)
    frame = data.X.iloc[small].assign(hired=data.y[small], **dict(data.sensitive.iloc[small]))
    frame.to_parquet(tmp_path / "small.parquet")
    streamed = classifier().fit(tmp_path / "small.parquet", y="hired", sensitive_features=SENSITIVE)
    inside = classifier().fit(
        data.X.iloc[small], data.y[small], sensitive_features=data.sensitive.iloc[small]
    )
    pd.testing.assert_frame_equal(streamed.front_.to_frame(), inside.front_.to_frame())


def test_chunks_leave_no_trace_on_the_front(folder, fitted):
    other = classifier(streaming=StreamSettings(chunk_rows=777))
    other.fit(ds.dataset(str(folder)), y="hired", sensitive_features=SENSITIVE)
    found, expected = (clf.front_.to_frame()[["error", "dp_gap"]] for clf in (other, fitted))
    np.testing.assert_allclose(found, expected, atol=2e-3)  # means differ by rounding


@pytest.mark.parametrize("model", ["boosting", pytest.param("auto", marks=pytest.mark.slow)])
def test_trees_learn_by_external_memory(folder, model, data):
    given = {"n_estimators": 8, "max_depth": 3, "epochs": None}
    clf = classifier(model=model, streaming=StreamSettings(rule_rows=1_500), **given)
    clf.fit(f"{folder}/*.parquet", y="hired", sensitive_features=SENSITIVE)
    inside = classifier(model=model, **given)
    inside.fit(data.X, data.y, sensitive_features=data.sensitive)
    assert set(clf.mixture_) == set(inside.mixture_)
    assert abs(least_error(clf) - least_error(inside)) < 0.04


def test_weights_count_and_rows_of_weight_zero_are_not_there(tmp_path, table):
    marked = pd.concat([table, table.assign(weight=0.0, hired=1 - table["hired"])])
    for name, frame in (("with", marked), ("without", table)):
        frame.to_parquet(tmp_path / f"{name}.parquet")
    given = {"y": "hired", "sensitive_features": SENSITIVE, "sample_weight": "weight"}
    fronts = [
        classifier(class_weight="balanced").fit(tmp_path / f"{name}.parquet", **given).front_
        for name in ("with", "without")
    ]
    pd.testing.assert_frame_equal(*(front.to_frame() for front in fronts))
    assert fronts[0][0].counts.squares is not None


def opened(source, **roles):
    """The rows of a stream after its first pass, as weights and groups with labels."""
    given = (roles.get("y", "y"), "g", roles.get("weight"))
    options = {"sensitive": None, "include_sensitive": False, "grouping": "intersectional"}
    rows = OpenedStream.of(open_files(source), given, StreamSettings(), **options).rows
    _, strata, weights = zip(*rows.read(), strict=True)
    return np.concatenate(weights), np.concatenate(strata), rows.facts


@pytest.mark.parametrize("form", ["decimals", "category", "words", "dates"])
def test_weights_are_numbers_in_any_form(tmp_path, form):
    weight = pd.Series([0.5, 1.5, 0.0] * 40)
    forms = {
        "decimals": weight.map(lambda one: Decimal(str(one))),
        "category": weight.astype("category"),
        "words": weight.astype(str),
        "dates": pd.to_datetime(weight),
    }
    frame = pd.DataFrame({"g": ["a", "b"] * 60, "y": [0, 0, 1, 1] * 30, "x": np.arange(120)})
    for name, column in (("floats", weight), (form, forms[form])):
        frame.assign(w=column).to_parquet(tmp_path / f"{name}.parquet")
    if form in ("words", "dates"):
        with pytest.raises(ValueError, match=r"sample_weight must be numbers, got (text|datetime)"):
            opened(tmp_path / f"{form}.parquet", weight="w")
        return
    found, wanted = (opened(tmp_path / f"{one}.parquet", weight="w") for one in (form, "floats"))
    for ours, theirs in zip(found[:2], wanted[:2], strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_allclose(found[2].label_totals, wanted[2].label_totals)


def test_columns_named_in_sensitive_need_no_argument(folder, table):
    clf = classifier(sensitive=SENSITIVE, criteria=("dp", "tpr"), grouping="attributes")
    clf.fit(folder, y="hired")
    assert clf.n_features_in_ == 7
    people = table.drop(columns=["hired", "weight"])
    assert np.array_equal(clf.predict(people), clf.predict(people.drop(columns=SENSITIVE)))
    assert list(clf.front_[0].gaps) == ["dp", "tpr"]


def test_thresholds_by_group_and_a_fixed_share_go_with_streams(folder, data):
    clf = classifier(group_thresholds=True, selection_rate=0.3)
    clf.fit(folder, y="hired", sensitive_features=SENSITIVE)
    shares = [point.share_favored for point in clf.front_]
    np.testing.assert_allclose(shares, 0.3, atol=2 / 1_200)
    decided = clf.predict(data.X, sensitive_features=data.sensitive)
    assert 0.25 < decided.mean() < 0.35


@pytest.mark.parametrize("scoring", ["balanced_accuracy", "f1"])
def test_points_are_ranked_by_any_scoring(folder, scoring):
    clf = classifier(scoring=scoring).fit(folder, y="hired", sensitive_features=SENSITIVE)
    assert clf.front_[0].loss == min(point.loss for point in clf.front_)


def test_loaders_and_functions_are_streams(data, folder):
    codes = np.stack([pd.factorize(data.sensitive[name])[0] for name in SENSITIVE], 1)
    x = torch.tensor(data.X.select_dtypes("number").to_numpy())
    rows = torch.utils.data.TensorDataset(x, torch.from_numpy(data.y), torch.from_numpy(codes))
    clf = classifier().fit(torch.utils.data.DataLoader(rows, batch_size=500, shuffle=True))
    assert clf.n_features_in_ == x.shape[1]
    assert not hasattr(clf, "feature_names_in_")
    assert clf.predict(x.numpy()).shape == (N,)
    assert clf.front_[0].counts.groups.attributes == ("attribute0", "attribute1")
    again = classifier().fit(
        lambda: ds.dataset(str(folder)).scanner().to_reader(),
        y="hired",
        sensitive_features=SENSITIVE,
    )
    assert len(again.front_) > 1


def test_nothing_is_left_on_disk(folder, tmp_path):
    settings = StreamSettings(folder=tmp_path)
    clf = classifier(streaming=settings, model="boosting", n_estimators=2, epochs=None)
    clone(clf).fit(folder, y="hired", sensitive_features=SENSITIVE)
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="favorable_label must be one of"):
        clone(clf).set_params(favorable_label=7).fit(
            folder, y="hired", sensitive_features=SENSITIVE
        )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"search": "inprocess"}, "search must be 'auto' or 'postprocess' where X is a stream"),
        ({"model": LogisticRegression()}, "model must be of 'auto', 'mlp', 'linear'"),
        ({"init": lambda X: np.full(len(X), 0.5)}, "init must be None where X is a stream"),
        ({"validation": "cross"}, "validation must be 'auto' or 'split' where X is a stream"),
    ],
)
def test_what_no_stream_can_give_is_refused_before_it_is_read(given, match):
    with pytest.raises(ValueError, match=match):
        classifier(**{"epochs": None, **given}).fit("nowhere.parquet", y="y")


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        ({"y": None}, ValueError, "y must name the column of the stream that holds the labels"),
        ({"y": "hire"}, ValueError, r"y must name columns of the stream, got \['hire'\]"),
        ({"y": np.zeros(N)}, TypeError, "y must be the name of a column where X is a stream"),
        ({"sensitive_features": "age"}, ValueError, "sensitive_features must name columns"),
        ({"sensitive_features": ["hired"]}, ValueError, "must name different columns"),
        ({"sample_weight": "town"}, ValueError, "sample_weight must be numbers, got text"),
    ],
)
def test_wrong_names_of_columns_are_refused(folder, given, error, match):
    with pytest.raises(error, match=match):
        classifier().fit(folder, **{"y": "hired", "sensitive_features": SENSITIVE, **given})


def written(tmp_path, table, **columns):
    table.drop(columns="weight").assign(**columns).to_parquet(tmp_path / "bad.parquet")
    return tmp_path / "bad.parquet"


def test_bad_rows_are_told_by_their_place(tmp_path, table):
    column = table.columns[0]
    wrong = table[column].astype(float).to_numpy().copy()
    wrong[5_500] = np.inf
    path = written(tmp_path, table, **{column: wrong})
    clf = classifier(streaming=StreamSettings(chunk_rows=1_000))
    with pytest.raises(ValueError, match=r"In rows 5,000 to 5,999 of the stream: .* finite"):
        clf.fit(path, y="hired", sensitive_features=SENSITIVE)


@pytest.mark.parametrize("column", ["town", "sex"])
def test_files_without_a_value_in_a_column_of_text_are_as_their_table(tmp_path, table, column):
    small = table.drop(columns="weight")[:900].copy()
    small.loc[:299, column] = None
    for place in range(3):
        part = small[300 * place : 300 * (place + 1)]
        part.to_parquet(tmp_path / f"{place}.parquet")
        part.to_csv(tmp_path / f"{place}.csv", index=False)
    inside = classifier().fit(
        small.drop(columns=["hired", *SENSITIVE]), small.hired, sensitive_features=small[SENSITIVE]
    )
    for source in (f"{tmp_path}/*.parquet", f"{tmp_path}/*.csv"):
        streamed = classifier().fit(source, y="hired", sensitive_features=SENSITIVE)
        pd.testing.assert_frame_equal(streamed.front_.to_frame(), inside.front_.to_frame())


def test_missing_labels_are_counted(tmp_path, table):
    path = written(tmp_path, table, hired=table["hired"].where(table.index % 3 > 0).astype("Int8"))
    with pytest.raises(ValueError, match="y must not have missing values, got 2000 in 6000 rows"):
        classifier().fit(path, y="hired", sensitive_features=SENSITIVE)


def test_a_column_that_names_rows_is_refused(tmp_path):
    n = 70_000
    frame = pd.DataFrame({"id": [f"row{i}" for i in range(n)], "y": np.arange(n) % 2, "s": 0})
    frame.to_parquet(tmp_path / "names.parquet")
    with pytest.raises(ValueError, match="'id' of X must have at most 65,536 different values"):
        classifier().fit(tmp_path / "names.parquet", y="y", sensitive_features="s")


def test_an_empty_stream_is_refused(tmp_path, table):
    table.iloc[:0].to_parquet(tmp_path / "empty.parquet")
    with pytest.raises(ValueError, match="X must have rows, got a stream of 0 rows"):
        classifier().fit(tmp_path / "empty.parquet", y="hired", sensitive_features=SENSITIVE)


def test_a_function_whose_reader_is_used_up_is_refused(table):
    calls = []

    def reader():
        calls.append(1)
        return iter([table.drop(columns="weight")] if len(calls) < 3 else [])

    with pytest.raises(ValueError, match="whenever it is read, got 6,000 rows at first and 0"):
        classifier().fit(reader, y="hired", sensitive_features=SENSITIVE)


@pytest.mark.parametrize(
    ("settings", "draw", "message"),
    [
        ({}, {"n": 5_500}, "other inputs in rows 0 to 5,499 than at first"),
        ({"bins": "tree"}, {"frac": 1.0}, "other inputs in rows 0 to 5,999 than at first"),
    ],
)
def test_a_function_that_draws_other_rows_is_refused(table, settings, draw, message):
    """As many as before, of the same labels and groups."""
    seeds = count()

    def reader():
        return iter([table.drop(columns="weight").sample(**draw, random_state=next(seeds))])

    with pytest.raises(ValueError, match=f"whenever it is read, got {message}"):
        classifier(**settings).fit(reader, y="hired", sensitive_features=SENSITIVE)


@pytest.mark.parametrize(
    ("draw", "message"),
    [({"n": 6_000, "replace": True}, "another number of rows"), ({"frac": 1.0}, "rows in another")],
)
def test_rows_that_change_in_between_are_found_too(table, draw, message):
    """One call gives others, before the one whose rows are compared with the sample."""
    calls = count()

    def reader():
        place, rows = next(calls), table.drop(columns="weight")
        return iter([rows.sample(**draw, random_state=1) if place == 2 else rows])

    clf = APFExClassifier(model="linear", n_members=2)  # which looks for bins by labels
    with pytest.raises(ValueError, match=f"whenever it is read, got {message}"):
        clf.fit(reader, y="hired", sensitive_features=SENSITIVE)


def test_without_sensitive_features_there_is_one_plain_model(folder):
    with pytest.warns(UserWarning, match="the front is a single plain model"):
        clf = classifier().fit(folder, y="hired")
    assert len(clf.front_) == 1


def test_groups_that_no_row_measures_are_warned_of_once(tmp_path, table):
    rare = table["sex"].astype(object).mask(table.index == 0, "X")
    path = written(tmp_path, table, sex=rare)
    with warnings.catch_warnings(record=True, action="always") as caught:
        classifier().fit(path, y="hired", sensitive_features=SENSITIVE)
    (warned,) = (one for one in caught if "left out of the gaps" in str(one.message))
    assert warned.filename == __file__  # the line that called fit


@pytest.mark.parametrize("given", [{}, {"group_thresholds": True}, TREES])
def test_of_many_groups_the_front_is_that_of_the_rows_in_memory(tmp_path, given):
    """144 groups: rules know levels, pairs and bands of them, whether rows are in memory or not."""
    data = make_biased(n=8_000, random_state=0)
    region, decade = np.random.default_rng(7).integers(0, 6, (2, 8_000))
    people = data.sensitive.assign(region=region, decade=decade)
    data.X.assign(hired=data.y, **dict(people)).to_parquet(tmp_path / "many.parquet")
    clf = classifier(grouping="attributes", **given)
    names = list(people.columns)
    streamed = clone(clf).fit(tmp_path / "many.parquet", y="hired", sensitive_features=names)
    inside = clone(clf).fit(data.X, data.y, sensitive_features=people)
    assert len(streamed.front_[0].counts.groups) == 144
    fronts = [one.front_.to_frame() for one in (streamed, inside)]
    assert list(fronts[0].columns) == list(fronts[1].columns)
    for bound in (1.0, 0.15):
        errors = []
        for front in fronts:
            fair = front.filter(regex="gap").max(axis=1) <= bound
            errors.append(front["error"][fair].min())
        assert abs(errors[0] - errors[1]) < 0.03
    new = {"sensitive_features": people[:50]} if given.get("group_thresholds") else {}
    assert set(streamed.predict(data.X[:50], **new)) <= {0, 1}


def test_groups_that_there_is_no_memory_for_are_told(folder, monkeypatch):
    monkeypatch.setattr("apfex.front._chunked_search.is_too_much", lambda size: size > 10_000)
    with pytest.raises(ValueError, match=r"fewer groups than 4: what \d+ rules decide"):
        classifier().fit(folder, y="hired", sensitive_features=SENSITIVE)


def rows_of(source, folder):
    """Rows of a source with labels in y and groups in s."""
    usual = {"sensitive": None, "include_sensitive": False, "grouping": "intersectional"}
    stream = open_stream(source, folder, ["s"])
    return OpenedStream.of(stream, ("y", "s", None), StreamSettings(), **usual).rows


CHANGES = {
    "another order": (lambda table, n: table.sample(frac=1, random_state=n), "other inputs"),
    "other inputs": (
        lambda table, n: table.assign(merit_1=table["merit_1"] + n),
        "other inputs in rows 0 to 5,999",
    ),
    "other labels": (
        lambda table, n: table.assign(hired=np.roll(table["hired"], n)),
        "other labels or groups in rows 0 to 5,999",
    ),
    "other weights": (
        lambda table, n: table.assign(weight=np.roll(table["weight"], n)),
        "other weights in rows 0 to 5,999",
    ),
}
"""What a function makes of a table when it is called for the n-th time, and what is said of it."""


@pytest.mark.parametrize("name", CHANGES)
def test_a_function_whose_rows_change_is_refused(table, name):
    change, found = CHANGES[name]
    calls = []

    def rows():
        calls.append(None)
        yield change(table, len(calls))

    roles = {"y": "hired", "sensitive_features": SENSITIVE, "sample_weight": "weight"}
    with pytest.raises(ValueError, match=f"the same rows in the same order.*{found}"):
        classifier().fit(rows, **roles)


def test_rows_beyond_the_sample_that_change_are_refused(tmp_path):
    """A few labels among many rows, none of which is in the sample of the first pass."""
    n, calls = 60_000, []
    table = pd.DataFrame({"x": np.arange(n) / n, "y": np.arange(n) % 2, "s": np.arange(n) // 2 % 2})
    unseen = np.setdiff1d(np.arange(n), rows_of(lambda: iter([table]), tmp_path).places)[:3]

    def rows():
        calls.append(None)
        yield table.assign(y=table["y"].where(~table.index.isin(unseen) | (len(calls) < 3), 1))

    with pytest.raises(ValueError, match="another number of rows of a label in a group"):
        classifier().fit(rows, y="y", sensitive_features="s")


BIG = 2**53
CODES = {
    "int64": (pa.int64(), [BIG, BIG + 1, None]),
    "uint64": (pa.uint64(), [2**63 + 1, 2**63 + 2, None]),
}


@pytest.mark.parametrize("name", CODES)
@pytest.mark.parametrize("form", ["parquet", "csv", "function"])
def test_large_codes_beside_missing_ones_stay_apart(tmp_path, name, form):
    kind, codes = CODES[name]
    chunks = [
        pa.table({"x": np.arange(60) / 60, "s": pa.array(own * 20, kind), "y": [0, 1] * 30})
        for own in ([codes[0], codes[1], codes[0]], codes)  # in one chunk none is missing
    ]
    for place, chunk in enumerate(chunks):
        pq.write_table(chunk, tmp_path / f"{place}.parquet")
        chunk.to_pandas(integer_object_nulls=True).to_csv(tmp_path / f"{place}.csv", index=False)
    stream = (lambda: iter(chunks)) if form == "function" else tmp_path / f"*.{form}"
    rows = rows_of(stream, tmp_path)
    assert rows.facts.groups.names == (f"s={codes[0]}", f"s={codes[1]}", "s=<missing>")
    assert rows.facts.counts.sum(1).tolist() == [60, 40, 20]
    strata = np.concatenate([strata for _, strata, _ in rows.read()])
    assert np.bincount(strata // 2).tolist() == [60, 40, 20]

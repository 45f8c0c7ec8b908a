"""Methods on one trial, and what is recorded of them."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

import apfex
from apfex.front import hypervolume, non_dominated
from apfex.strategies import Choice
from apfex_reproduction.baselines import (
    BUDGETS,
    MMAMO,
    PaperAPFEx,
    PlainNetwork,
    Table,
    fit_tables,
)
from apfex_reproduction.experiments._ablations import RandomSwitch
from apfex_reproduction.experiments._ladder import ACCURACY_SPENT, choose_by_rule
from apfex_reproduction.experiments._measure import DIGITS, Ruler
from apfex_reproduction.experiments._methods import (
    METHODS,
    Constant,
    Convex,
    FrontSearch,
    Network,
    PostProcessing,
    read_methods,
    revision_of,
)
from apfex_reproduction.experiments._protocol import Part, Trial

FORMAT = 1
"""Of records; a reader refuses others."""
RULES = ("nearest", "fairest", "last")
"""How an epoch is chosen: MAMO's rule, the fairest one that is nearly as accurate as the plain
network and not constant (the most accurate where there is none: ``met`` is false), the last."""
_ROUNDING = 1e-9

Record = dict[str, Any]


def settings_of(dataset: str, budget: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What all gradient methods of a data set share."""
    if budget is None and dataset not in BUDGETS:
        raise ValueError(
            f"budget must be given for a data set other than {', '.join(BUDGETS)}, got None for "
            f"{dataset!r}."
        )
    return dict(BUDGETS[dataset] if budget is None else budget)


def run_methods(
    trial: Trial, methods: Sequence[str], budget: Mapping[str, Any] | None = None
) -> Iterator[Record]:
    """Fit methods to a trial, and give out a record for each as it is done.

    Parameters
    ----------
    trial : Trial
    methods : sequence of keys of ``METHODS``
    budget : mapping, optional
        Settings of the gradient methods; the paper's for this data set by default.

    Examples
    --------
    >>> from apfex.datasets import make_biased
    >>> from apfex_reproduction.experiments._protocol import split_dataset
    >>> trial = split_dataset(make_biased(200, random_state=0), "70/15/15", seed=0)
    >>> budget = {"epochs": 2, "batch_size": None, "learning_rate": 0.01}
    >>> [r["results"]["chosen"]["constant"] for r in run_methods(trial, ["always-1"], budget)]
    [True]
    """
    yield from run_trials([trial], methods, budget)


def run_trials(
    trials: Sequence[Trial], methods: Sequence[str], budget: Mapping[str, Any] | None = None
) -> Iterator[Record]:
    """Fit methods to several trials of a data set; gradient methods learn in step, in less time.

    Parameters
    ----------
    trials : sequence of Trial
    methods, budget
        As for :func:`run_methods`, whose records these are.

    Examples
    --------
    >>> from apfex.datasets import make_biased
    >>> from apfex_reproduction.experiments._protocol import split_dataset
    >>> data = make_biased(200, random_state=0)
    >>> trials = [split_dataset(data, "70/15/15", seed=seed) for seed in range(2)]
    >>> budget = {"epochs": 2, "batch_size": None, "learning_rate": 0.01}
    >>> [record["seed"] for record in run_trials(trials, ["always-1"], budget)]
    [0, 1]
    """
    read_methods(methods, tuple(METHODS))  # refuses unknown ones
    kinds = {key: METHODS[key] for key in methods}
    for trial in trials:
        for key, method in kinds.items():
            if isinstance(method, Constant):
                yield _run_constant(trial, key, method)
            elif isinstance(method, Convex):
                yield _run_convex(trial, key, method)
            elif isinstance(method, FrontSearch):
                yield _run_front(trial, key)
    if any(isinstance(method, Network | PostProcessing) for method in kinds.values()):
        yield from _run_networks(trials, kinds, settings_of(trials[0].dataset, budget))


def _run_constant(trial: Trial, key: str, method: Constant) -> Record:
    started = time.process_time()
    decided = np.full(len(trial.test), method.decision)
    results = {"chosen": Ruler(trial.test, trial.groupings).measure(decided)}
    return _record(trial, key, {}, results, started)


def _run_networks(
    trials: Sequence[Trial], kinds: Mapping[str, Any], settings: Mapping[str, Any]
) -> Iterator[Record]:
    """The gradient methods of all trials in step, then what builds on the plain network."""
    started = time.process_time()
    wanted = [key for key, method in kinds.items() if isinstance(method, Network)]
    keys = wanted if "plain" in wanted else ["plain", *wanted]  # others are judged by it
    tables = [_table(trial, keys, settings) for trial in trials]
    with warnings.catch_warnings():  # records say which gaps cannot be told
        warnings.simplefilter("ignore", UserWarning)
        fit_tables(tables)
    each = (time.process_time() - started) / (len(keys) * len(trials))
    for trial, table in zip(trials, tables, strict=True):
        fitted = dict(zip(keys, table.estimators, strict=True))
        yield from _network_records(trial, fitted, kinds, settings, each)


def _table(trial: Trial, keys: Sequence[str], settings: Mapping[str, Any]) -> Table:
    common = {**settings, "random_state": trial.seed}
    made: list[Any] = [
        method.make(trial.attributes, common)
        for method in (METHODS[key] for key in keys)
        if isinstance(method, Network)
    ]
    rows = trial.training
    return Table(made, rows.X, rows.y, rows.sensitive, validation=_triple(trial.validation))


def _network_records(
    trial: Trial,
    fitted: Mapping[str, Any],
    kinds: Mapping[str, Any],
    settings: Mapping[str, Any],
    each: float,
) -> Iterator[Record]:
    """Of the wanted ones among the fitted, and of the reject options."""
    plain = fitted["plain"]
    enough = max(0.0, 1 - plain.archive_.best(0).values[0] - ACCURACY_SPENT)
    ruler, x = Ruler(trial.test, trial.groupings), plain.encode(trial.test.X)
    for key, clf in fitted.items():
        if key in kinds:
            started = time.process_time() - each
            results, more = _measured(clf, ruler, x, enough)
            yield _record(trial, key, settings, results, started) | more
    for key, method in kinds.items():
        if isinstance(method, PostProcessing):
            yield _run_post_processing(trial, key, method, plain, settings, enough)


def _measured(clf: Any, ruler: Ruler, x: torch.Tensor, enough: float) -> tuple[Record, Record]:
    """What each rule chooses on the test rows, and the front and the course of training."""
    plain = isinstance(clf, PlainNetwork)
    rules = {"chosen": "accurate", "last": "last"} if plain else {rule: rule for rule in RULES}
    points = [*clf.archive_, clf.last_]
    decided = clf.predict_points(x, points)
    places = {point.payload.place: place for place, point in enumerate(points)}
    results = {}
    for name, rule in rules.items():
        epoch = _select(clf, rule, enough).epoch_
        result = ruler.measure(decided[places[epoch]]) | {"epoch": epoch}
        results[name] = result | _met(clf, rule, enough)
    more = _front_of(ruler.trade_offs(decided[:-1]))
    return results, more | (_trace_of(clf) if isinstance(clf, PaperAPFEx | MMAMO) else {})


def _select(clf: Any, rule: str, enough: float) -> Any:
    with warnings.catch_warnings():  # "no candidate is accurate enough": the most accurate is used
        warnings.simplefilter("ignore", UserWarning)
        return clf.select(rule, enough if rule == "fairest" else None)


def _met(clf: Any, rule: str, enough: float) -> Record:
    """Of "fairest": whether any candidate was accurate enough without being constant."""
    if rule != "fairest":
        return {}
    accurate = (point for point in clf.archive_ if point.values[0] <= 1 - enough + _ROUNDING)
    return {"met": any(not point.payload.constant for point in accurate)}


def _front_of(trade_offs: np.ndarray) -> Record:
    """Non-dominated (error, dp gap, tpr gap) of the crossing on test rows, and hypervolume."""
    known = trade_offs[~np.isnan(trade_offs).any(1)]
    if not len(known):
        return {"front": [], "hypervolume": None}
    front = np.unique(known[non_dominated(known)], axis=0)
    return {
        "front": front.round(DIGITS).tolist(),
        "hypervolume": round(hypervolume(front, [1.0, 1.0, 1.0]), DIGITS),
    }


def _trace_of(clf: PaperAPFEx | MMAMO) -> Record:
    """Which losses; the share of each strategy; and the course of training, window by window.

    ``constraints`` is the number of steps that the constraint step of Algorithm 1 has bent: the
    tables of the paper do not use it.
    """
    frame = clf.windows_
    family = clf.family if isinstance(clf, PaperAPFEx) else clf.losses
    if frame.empty:
        return {"losses": family}
    strategies = frame["strategy"].astype(str)
    if isinstance(clf, PaperAPFEx) and isinstance(clf.strategy, RandomSwitch):
        strategies = frame["choice"].map(lambda number: Choice(int(number)).name)
    shares = strategies.value_counts(normalize=True)
    window = int(frame["step"].iloc[1]) if len(frame) > 1 else 1

    def column(name: str) -> list[float]:
        return [float(f"{value:.4g}") for value in frame[name]]

    names = dict(enumerate(clf.objectives_))
    return {
        "losses": family,
        "shares": {name: round(float(share), 4) for name, share in sorted(shares.items())},
        "constraints": 0,
        "trace": {
            "step": [int(step) + window for step in frame["step"]],
            "strategy": strategies.tolist(),
            "losses": {name: column(f"loss{k}") for k, name in names.items()},
            "weights": {name: column(f"weight{k}") for k, name in names.items()},
            "norm": column("direction_norm"),
            "norms": {name: column(f"norm{k}") for k, name in names.items()},
            "omega": column("omega"),
            "aligned": column("aligned"),
        },
    }


def _run_convex(trial: Trial, key: str, method: Convex) -> Record:
    started = time.process_time()
    attribute = trial.attributes[method.place]
    clf = method.make(trial.seed)
    with warnings.catch_warnings():  # "no beta is fair enough": the fairest is used
        warnings.simplefilter("ignore", UserWarning)
        clf.fit(
            trial.training.X,
            trial.training.y,
            sensitive_features=trial.training.sensitive[attribute],
            validation=(
                trial.validation.X,
                trial.validation.y,
                trial.validation.sensitive[attribute],
            ),
        )
    result = Ruler(trial.test, trial.groupings).measure(clf.predict(trial.test.X))
    chosen = {name: round(getattr(clf, f"{name}_"), 8) for name in ("beta", "lam", "gap")}
    return _record(trial, key, {"kernel": clf.kernel}, {"chosen": result | chosen}, started)


def _run_post_processing(
    trial: Trial,
    key: str,
    method: PostProcessing,
    plain: Any,
    settings: Mapping[str, Any],
    enough: float,
) -> Record:
    started = time.process_time()
    columns = [trial.attributes[place] for place in method.places]
    clf = method.make(plain, trial.seed)
    rows = trial.validation
    clf.fit(rows.X, rows.y, sensitive_features=rows.sensitive[columns])
    results, ruler = {}, Ruler(trial.test, trial.groupings)
    for rule in ("nearest", "fairest"):
        chosen = _select(clf, rule, enough)
        decided = chosen.predict(trial.test.X, sensitive_features=trial.test.sensitive[columns])
        placed = {"threshold": chosen.threshold_, "margin": chosen.margin_}
        result = ruler.measure(decided) | {n: round(v, DIGITS) for n, v in placed.items()}
        results[rule] = result | _met(clf, rule, enough)
    return _record(trial, key, {**settings, "search": clf.search}, results, started)


def _run_front(trial: Trial, key: str) -> Record:
    """Every point of the front, on the rows that choose and on the test rows."""
    from apfex.estimator import APFExClassifier

    started = time.process_time()
    clf = APFExClassifier(criteria=("dp", "tpr"), max_gap=1.0, random_state=trial.seed)
    with warnings.catch_warnings():  # groups too small to tell: records say which
        warnings.simplefilter("ignore", UserWarning)
        clf.fit(trial.training.X, trial.training.y, sensitive_features=trial.training.sensitive)
    parts = {"validation": trial.validation, "test": trial.test}
    decided = {name: clf.decide_all(part.X) for name, part in parts.items()}
    rulers = {name: Ruler(part, trial.groupings) for name, part in parts.items()}
    points = [
        {name: rulers[name].measure(decided[name][place]) for name in parts}
        for place in range(len(clf.front_))
    ]
    crossing = list(trial.groupings)[-1]
    places = {rule: choose_by_rule(points, rule, crossing) for rule in ("nearest", "fairest")}
    results = {rule: points[place]["test"] | {"point": place} for rule, place in places.items()}
    record = _record(trial, key, {}, results, started) | {"points": points}
    return record | _front_of(rulers["test"].trade_offs(decided["test"]))


def _record(
    trial: Trial,
    key: str,
    settings: Mapping[str, Any],
    results: Mapping[str, Any],
    started: float,
) -> Record:
    return {
        "format": FORMAT,
        "revision": revision_of(key),
        "apfex": apfex.__version__,
        "torch": torch.__version__,
        "dataset": trial.dataset,
        "split": trial.split,
        "seed": trial.seed,
        "method": key,
        "settings": dict(settings),
        "rows": trial.sizes,
        "attributes": list(trial.attributes),
        "results": dict(results),
        "cpu_seconds": round(time.process_time() - started, 2),
    }


def _triple(part: Part) -> tuple[Any, Any, Any]:
    return part.X, part.y, part.sensitive

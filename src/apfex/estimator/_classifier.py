"""``APFExClassifier``."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted, validate_data

from apfex.arguments import require_numbers, require_whole
from apfex.auditing import Audit
from apfex.clusters import is_dask_frame
from apfex.estimator._audit import compare_decisions, read_audit_rows
from apfex.estimator._checkpoint import opened_checkpoint, seed_of, settings_of
from apfex.estimator._dask_inputs import OpenedFrame, settings_for_dask
from apfex.estimator._inputs import (
    class_code,
    column_names,
    drop_sensitive,
    read_features,
    read_groups_at_predict,
    read_groups_if_there,
    read_labels,
    read_rows,
    read_weights,
)
from apfex.estimator._settings import (
    read_bounds,
    read_increase,
    read_settings,
    settings_for_rows,
)
from apfex.estimator._shared_table import check_settings, read_alike
from apfex.estimator._stream_inputs import OpenedStream
from apfex.estimator._stream_roles import names_given, read_streaming
from apfex.front import (
    Features,
    Fitted,
    Front,
    InputRows,
    PartitionedRows,
    Rows,
    SearchSettings,
    StreamedRows,
    decide_by_scores,
    front_as_html,
    search_front,
    search_partitioned_front,
    search_streamed_front,
)
from apfex.models import InitModel, own_modes, thread_count, use_threads
from apfex.persistence import StoredModel, export_onnx, save_model
from apfex.rules import RuleModel
from apfex.streams import StreamSettings, is_stream, open_stream, spool_folder
from apfex.tables import check_indexes

if TYPE_CHECKING:
    import pandas as pd

_NEEDED = (
    "criteria",
    "favorable_label",
    "include_sensitive",
    "max_error_increase",
    "max_gap",
    "n_jobs",
    "sensitive",
)
"""Arguments that a fitted classifier needs, and that must be stored with it."""


class APFExClassifier(ClassifierMixin, BaseEstimator):
    """A classifier with the whole front of accuracy and intersectional fairness.

    One ``fit`` explores the trade-offs between the task and the gaps of the sensitive attributes'
    crossing: members with aims of their own, the paper's strategies and the bounds asked for decide
    where, and an archive collects. A member is a decision rule on one cross-fitted model of group
    and label, or a model of its own. ``front_`` shows the points, ``select`` and ``at`` hand them
    out as classifiers of their own.

    Parameters
    ----------
    criteria : str or sequence of str
        Gaps to close: "dp" (demographic parity), "tpr" (equal opportunity), "fpr", ...,
        "equalized_odds"; fairlearn's words are taken as well.
    grouping : {"intersectional", "attributes"}
        Gaps over the cells of the crossing, or over each attribute on its own.
    model : {"auto", "mlp", "linear", "boosting"}, tuple of some, classifier, or callable
        A network with one hidden layer, a linear model, boosted trees (XGBoost, which takes
        categories and missing values as they are), or a factory
        ``(n_features, n_outputs) -> nn.Module``. ``("mlp", "boosting")``: both, mixed in the
        proportion that predicts unseen rows best. "auto": below 5,000 training rows trees and
        linear models, mixed so; on larger tables trees, and networks beside them where linear
        models beside trees predict a sample of 2,000 rows clearly better. Where every point is a
        model of its own ("inprocess"), "auto" means "mlp", or "boosting" for
        ``monotone_constraints`` and for an ``init`` of XGBoost. Any classifier of scikit-learn's
        form with ``predict_proba``, unfitted: clones of it learn the label, boosted trees the
        group given the label. A ``Pipeline``, and what contains one, gets the table as it is, and
        so do HistGradientBoosting, LightGBM, XGBoost and CatBoost (text becomes pandas categories
        for the first three); any other classifier gets standardised, one-hot numbers without gaps.
    sensitive : sequence of column names, optional
        Sensitive columns of ``X``, instead of ``sensitive_features`` in ``fit``.
    include_sensitive : bool
        Whether the sensitive attributes are inputs of the model.
    scoring : {"accuracy", "balanced_accuracy"} or name of a scorer
        What points are ranked by. "balanced_accuracy" also leads the search, so that a rare
        label counts as much as a frequent one. Any other scorer of scikit-learn that uses
        decisions, such as "f1", only ranks.
    cost_matrix : matrix of shape [c, c], optional
        What it costs to decide for the class of a column where the label is that of the row, in
        the order of ``classes_``: points are ranked by the mean cost, and rules fitted by it.
    class_weight : "balanced" or mapping from label to weight, optional
        How much an error on a row of each label counts when rules are fitted, or in the
        cross-entropy of members, as in scikit-learn:
        "balanced" is inversely proportional to how frequent a label is, a label that is not
        named counts 1. Points are still ranked by ``scoring``, such as "f1", and gaps are those
        of the rows as they are; ``scoring="balanced_accuracy"`` and ``cost_matrix`` do both, and
        do not go with it. Probabilities stay calibrated: what an error costs is a matter of the
        rule, and models below it that had learnt from weighted rows would count it twice.
    selection_rate : float, optional
        Of two classes: the share of rows that get the favorable label, the same at every point. It
        is exact on the rows that set it: the validation rows, which models have not learnt from,
        so that it holds for new rows but for chance; with ``validation="cross"`` all rows.
    n_points : int, optional
        The most points that the front keeps; 16 for each criterion by default, as with several of
        them it is a surface.
    max_gap : float or mapping from criterion to float
        The bound for the point that ``predict`` uses at first; 0.05 is 5 points, 1 no bound.
    max_error_increase : float, optional
        How much larger the error of that point may be than that of the best one.
    favorable_label : label, optional
        The outcome that a person would want; the last class by default. It tells who gains, and
        of two classes all rates are its own: with ``favorable_label=0`` "tpr" is the share of
        those with the label 0 who are decided so.
    search : {"auto", "postprocess", "inprocess"}
        "postprocess": a few models learn the probabilities of group and label together, and every
        point is another decision rule on top of them. "inprocess": every point is a network, or an
        ensemble on a common base model, trained towards its trade-off; there is no guess of the
        group. It is what a factory or ``monotone_constraints`` get.
    strategy : name, Strategy, or several, optional
        What decides where members go once they have arrived at their aims: "switch" (the paper's
        rule, the default), its parts "pcp", "aw" and "pss", "fixed" (the aims alone),
        "tchebycheff", "mgda", "cagrad", "pcgrad", "upgrad", or a strategy of
        :mod:`apfex.strategies`, such as ``FixedWeights((1, 2))``; several share the members.
        ``max_gap`` takes part in the search, too: some members keep within it, rules by prices,
        models by the constraint step of the paper's Algorithm 1.
    init : fitted model, or function, optional
        The front around the model in production, which is not fitted again: a classifier with
        ``predict_proba``, a ``Pipeline``, an XGBoost model, an ``nn.Module`` with logits as
        outputs, or a function from the table to probabilities (of each class, or of the second of
        two) or log-odds. It takes the columns of ``X`` as they are. Its probabilities, calibrated
        on the rows of ``fit``, are those of the label; ``model`` is not used. The point with
        ``epoch`` 0 decides as the model itself and is on the front even if others dominate it;
        with a ``cost_matrix``, a ``selection_rate`` or balanced accuracy there is none. Give
        ``fit`` rows that the model has not seen: on its own training rows it looks better than it
        is. It is not changed, and a ``clone`` shares it; a fitted front has a copy, where one can
        be made, and stays as it is when the model is fitted anew. With ``search="inprocess"`` an
        ``nn.Module``, or an XGBoost model with ``model="boosting"``, is where the training of
        every point starts.
    group_thresholds : bool
        Whether decisions may depend on the group of the row itself, which ``predict`` then needs.
        This treats people with the same inputs differently by their group.
    validation : {"auto", "split", "cross"}
        Which rows measure the points. "split": some, from which no model or rule has learnt.
        "cross": each row has its turn; the figures of a point are then those of rules fitted
        without the row, and what is handed out is fitted to all rows. "auto": "cross" for rules on
        fewer than 5,000 rows. These validation rows report, and pick the point for a bound; of
        members they also choose which are on the front, and rules are chosen by out-of-fold
        figures of the training rows.
    validation_fraction : float
        Share of the rows that measure at a time; rules are made with about one over it models of
        a kind, from 2 to 10.
    n_members : int, optional
        Members that explore the front together, each with an aim of its own: 26 rules, or 16
        models with ``search="inprocess"``.
    epochs : int, optional
        Passes over the rows of a network or linear model; by default 200 steps at least, else
        about 800 in 12 to 24 epochs. "auto" takes none of these five.
    batch_size : int
        Rows of a step.
    learning_rate : float, optional
        By default 0.02, less from ``init`` and for networks on small tables; of trees 0.1, or 0.05
        below 5,000 rows.
    weight_decay : float
        Of networks and linear models.
    hidden : sequence of int
        Widths of the hidden layers of a network.
    patience : int, optional
        Of members: one stops after so many epochs, or rounds, without a better sum of error and
        gaps. They are counted from when it has arrived at its aim, after three fifths of the
        training, so that strategies have their turn.
    n_estimators : int, optional
        Rounds of trees at most, as in XGBoost: 140, or 160 below 5,000 training rows; fewer where
        the loss of rows that do not learn stops falling. Members have 20 rounds of their own on
        top; with ``init`` only these.
    max_depth : int, optional
        Of trees: 6, or 3 below 5,000 training rows.
    monotone_constraints : mapping from column to -1, 0 or 1, optional
        Of trees: scores fall, or rise, with the column ("x0", ... for arrays); the trees of
        ``init`` are as they are.
    bins : {"auto", "tree", "quantile", None}
        Steps and ramps of numeric columns as additional inputs; "auto": "tree" from 5,000 rows on,
        none below.
    device : str
        "auto" takes a GPU if there is one.
    n_jobs : int, optional
        Threads of ``fit`` and ``predict``; -1: one for each processor. None: one for fewer than
        10,000 rows, which gain little from more and lose much on busy machines, else as many as
        torch is set to use, and no more than the process may have.
    random_state, verbose
        Seed; 1 shows a progress bar.
    streaming : StreamSettings, optional
        Where ``X`` is a stream: how much of it is in memory at a time, and where the rest is kept.

    Attributes
    ----------
    front_ : Front
        Points by rising error, measured on the validation rows. Rules are chosen by out-of-fold
        figures of the training rows, so a point may look dominated here; models of their own are
        chosen by the validation rows.
    point_ : int
        The place on the front that ``predict`` uses.
    mixture_ : dict from kind of model to share, or None
        Which models the rules share, and how much each of them counts, such as
        ``{"boosting": 0.7, "linear": 0.3}``; a model of the user's goes by the name of its class.
        None with ``search="inprocess"``.
    history_ : pandas.DataFrame or None
        What happened to every member, whether a point of the front comes from it or not: a row per
        ``member`` and step of rules, epoch of networks or round of trees (means of several from
        300 on), in those columns of :meth:`apfex.history.History.to_frame` that were measured.
        Losses are the expected error, or the cross-entropy of models, and the gaps of soft
        decisions on the training rows; ``strategy`` is what decided ("aim": the member's own aim;
        "bound": the bounds it has to keep). ``member`` and ``epoch`` of a point say where and when
        it was archived.
    fitted_ : Fitted
        All of it as one record: front, encoder, classes, groups, history and features.
    classes_, n_features_in_, feature_names_in_
        As in every classifier.

    Notes
    -----
    Sensitive features are used in training only, never at ``predict``, unless
    ``group_thresholds`` asks for them. Rules guess the groups from the other inputs, and decide by
    that guess; members have no such step. Of more than 64 groups rules know groupings instead:
    levels, pairs of attributes that matter, large groups alone and small ones in bands; points are
    measured by the groups in any case. Without sensitive features the front is a single
    plain model, and ``fit`` warns. ``predict_proba`` is the model's calibrated probability of the
    label, and not what decides: that is ``decision_function``, whose signs differ from point to
    point. ``fit`` never fails because a bound cannot be met: it takes the nearest non-trivial
    point, and warns once; so it does where only points that are nearly constant meet it.

    A trivial model takes no other off the front; one at most is shown. A group without rows that
    count among the validation rows is left out of the gap, with a warning; if fewer than two
    groups are left, ``fit`` refuses. Columns that are constant, or missing throughout, are left
    out. A single row of a class is for training. A fitted classifier holds no rows, but counts of
    those that measured its points, by group (for intervals at other confidences); so do its pickle
    and the folder that ``save`` makes, from which :func:`apfex.load` has it back.

    Examples
    --------
    >>> from apfex import make_biased
    >>> data = make_biased(n=600, random_state=0)
    >>> clf = APFExClassifier(max_gap=1.0, random_state=0)
    >>> clf = clf.fit(data.X, data.y, sensitive_features=data.sensitive)
    >>> len(clf.front_) >= 1
    True
    >>> clf.predict(data.X).shape
    (600,)
    >>> sum(clf.mixture_.values())
    1.0
    """

    n_features_in_: int
    feature_names_in_: np.ndarray
    fitted_: Fitted
    point_: int

    __metadata_request__fit = {"sensitive_features": True}  # noqa: RUF012 - scikit-learn's protocol
    __metadata_request__score = {"sensitive_features": True}  # noqa: RUF012

    def __init__(
        self,
        criteria: str | Sequence[str] = ("dp",),
        *,
        grouping: Literal["intersectional", "attributes"] = "intersectional",
        model: Any = "auto",
        sensitive: Sequence[str] | None = None,
        include_sensitive: bool = False,
        scoring: str = "accuracy",
        cost_matrix: Any = None,
        class_weight: Any = None,
        selection_rate: float | None = None,
        n_points: int | None = None,
        max_gap: float | Mapping[str, float] = 0.05,
        max_error_increase: float | None = None,
        favorable_label: Any = None,
        search: Literal["auto", "postprocess", "inprocess"] = "auto",
        strategy: Any = None,
        init: Any = None,
        group_thresholds: bool = False,
        validation: Literal["auto", "split", "cross"] = "auto",
        validation_fraction: float = 0.2,
        n_members: int | None = None,
        epochs: int | None = None,
        batch_size: int = 1024,
        learning_rate: float | None = None,
        weight_decay: float = 0.1,
        patience: int | None = None,
        hidden: Sequence[int] = (64,),
        n_estimators: int | None = None,
        max_depth: int | None = None,
        monotone_constraints: Mapping[str, int] | None = None,
        bins: Literal["auto", "tree", "quantile"] | None = "auto",
        device: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        streaming: StreamSettings | None = None,
    ) -> None:
        self.criteria = criteria
        self.grouping = grouping
        self.model = model
        self.sensitive = sensitive
        self.include_sensitive = include_sensitive
        self.scoring = scoring
        self.cost_matrix = cost_matrix
        self.class_weight = class_weight
        self.selection_rate = selection_rate
        self.n_points = n_points
        self.max_gap = max_gap
        self.max_error_increase = max_error_increase
        self.favorable_label = favorable_label
        self.search = search
        self.strategy = strategy
        self.init = init
        self.group_thresholds = group_thresholds
        self.validation = validation
        self.validation_fraction = validation_fraction
        self.n_members = n_members
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.patience = patience
        self.hidden = hidden
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.monotone_constraints = monotone_constraints
        self.bins = bins
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.streaming = streaming

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        checkpoint: Any = None,
    ) -> Self:
        """Explore the front.

        Parameters
        ----------
        X : table or array of shape [n, d], or stream
            Mixed types and missing values are fine; sparse matrices are not. A stream is read in
            chunks and need not fit into memory: path, pattern, folder or list of files of
            Parquet, Arrow or CSV, a pyarrow ``Dataset`` or reader, what has
            ``__arrow_c_stream__``, such as a relation of DuckDB, a function that returns a new
            reader or iterator of record batches, such an iterator, a torch ``DataLoader`` of
            ``(X, y, sensitive)`` or ``(X, y, sensitive, weight)``, or an XGBoost ``DataIter``. Rows
            of a Dask DataFrame stay on its workers, which grow trees together.
        y : array of shape [n], or column of a stream
            At least two classes, at least two rows of each. Of a stream the name of the column;
            None where the stream itself has labels, as a ``DataLoader`` does.
        sensitive_features : column, table or mapping, or columns of a stream, optional
            Not needed where ``sensitive`` names columns of ``X``.
        sample_weight : array of shape [n], or column of a stream, optional
            Only ratios matter. A row of weight zero is left out, as if it were not there.
        checkpoint : path, optional
            Folder in which finished parts of the fit are kept. Where the process is stopped, or
            killed, the same fit goes on from there, to the same front to the last bit. One of other
            data, other settings or another version is refused. The folder stays when the fit is
            finished.
        """
        settings = read_settings(self)
        given = (y, sensitive_features, sample_weight)
        with ExitStack() as until_fitted:
            until_fitted.enter_context(own_modes(settings.device.type))
            read = partial(self._read, X, given, settings, until_fitted)
            rows, search, settings = read_alike(read)
            known = rows if isinstance(rows, Rows) else rows.facts
            favorable = class_code(known.classes, self.favorable_label)
            settings = settings_for_rows(settings, known, favorable, self.n_jobs, self.class_weight)
            left_out = () if self.include_sensitive else tuple(column_names(self.sensitive))
            names = getattr(self, "feature_names_in_", None)
            features = Features(self.n_features_in_, names, left_out)
            keeper = until_fitted.enter_context(opened_checkpoint(checkpoint, self))
            seed = seed_of(self.random_state, keeper)
            check_settings(settings_of(self), self.streaming, seed)
            fitted = search(
                rows,
                settings,
                features=features,
                favorable=favorable,
                seed=seed,
                checkpoint=keeper,
            )
        # both or none: where warnings are errors, this may fail
        point = fitted.front.first_choice(settings.bounds, settings.max_error_increase)
        self.fitted_, self.point_ = fitted, point
        return self

    def _read(
        self,
        X: Any,
        given: tuple[Any, Any, Any],
        settings: SearchSettings,
        until_fitted: ExitStack,
    ) -> tuple[Rows | StreamedRows | PartitionedRows, Callable[..., Fitted], SearchSettings]:
        """The rows of ``fit``, wherever they are, their search and its settings."""
        if is_dask_frame(X):
            return self._open_dask(X, given, settings)
        if is_stream(X):
            return *self._open_stream(X, given, settings, until_fitted), settings
        return self._read_table(X, given), search_front, settings

    def _read_table(self, X: Any, given: tuple[Any, Any, Any]) -> Rows:
        """All rows, checked; ``given`` are labels, sensitive features and weights."""
        X = read_features(X)
        validate_data(self, X, skip_check_array=True)
        return read_rows(
            X,
            *given,
            sensitive=self.sensitive,
            include_sensitive=self.include_sensitive,
            grouping=self.grouping,
        )

    def _open_stream(
        self,
        X: Any,
        given: tuple[Any, Any, Any],
        settings: SearchSettings,
        until_fitted: ExitStack,
    ) -> tuple[Rows | StreamedRows, Callable[..., Fitted]]:
        """Rows that are read in chunks, and their search; in memory where each is to choose."""
        streaming = read_streaming(self.streaming, settings)
        folder = until_fitted.enter_context(spool_folder(streaming.folder))
        opened = OpenedStream.of(
            open_stream(X, folder, names_given(self.sensitive, given[1])),
            given,
            streaming,
            sensitive=self.sensitive,
            include_sensitive=self.include_sensitive,
            grouping=self.grouping,
        )
        validate_data(self, opened.header(), skip_check_array=True)
        if settings.crosses(opened.rows.facts.n_rows):
            return opened.in_memory(), search_front
        return opened.rows, partial(search_streamed_front, streaming=streaming, folder=folder)

    def _open_dask(
        self, X: Any, given: tuple[Any, Any, Any], settings: SearchSettings
    ) -> tuple[Rows | PartitionedRows, Callable[..., Fitted], SearchSettings]:
        """Rows that stay on Dask workers, their search and its settings; few rows in memory."""
        streaming, for_dask = read_streaming(self.streaming, settings), settings_for_dask(settings)
        opened = OpenedFrame.of(
            X,
            given,
            streaming,
            sensitive=self.sensitive,
            include_sensitive=self.include_sensitive,
            grouping=self.grouping,
        )
        validate_data(self, opened.header(), skip_check_array=True)
        if for_dask.crosses(opened.rows.facts.n_rows):
            return self._read_table(*opened.in_memory()), search_front, settings
        return opened.rows, partial(search_partitioned_front, streaming=streaming), for_dask

    @property
    def front_(self) -> Front:
        """Points by rising error, measured on the validation rows."""
        check_is_fitted(self, "fitted_")  # hasattr is False then
        return self.fitted_.front

    @property
    def classes_(self) -> np.ndarray:
        """The labels, sorted."""
        check_is_fitted(self, "fitted_")
        return self.fitted_.classes

    @property
    def mixture_(self) -> dict[str, float] | None:
        """Which models the rules share, and how much each counts; None without rules."""
        module = self.front_[0].module
        return module.joint.mixture() if isinstance(module, RuleModel | InitModel) else None

    @property
    def history_(self) -> pd.DataFrame | None:
        """What happened to every member, step by step."""
        check_is_fitted(self, "fitted_")
        return self.fitted_.history

    def select(
        self,
        max_gap: float | Mapping[str, float] | None = None,
        *,
        confidence: float | None = None,
        max_error_increase: float | None = None,
    ) -> Self:
        """The most accurate non-trivial point within the bounds, as a fitted classifier.

        Parameters
        ----------
        max_gap : float or mapping, optional
            A number: for every criterion; that of the constructor by default.
        confidence : float, optional
            0.9, for instance: the upper end of the interval with this confidence must be within
            the bound, not only the gap.
        max_error_increase : float, optional
            How much larger its error may be than that of the best point; that of the constructor
            by default. A point that is nearly constant is handed out with a warning.
        """
        check_is_fitted(self, "front_")
        if confidence is not None:
            require_numbers(confidence=confidence)
        if confidence is not None and not 0 < confidence < 1:
            raise ValueError(f"confidence must be None or between 0 and 1, got {confidence}.")
        if not self.front_[0].gaps:
            raise ValueError("select needs gaps to bound, but fit was given no sensitive features.")
        bounds = read_bounds(self.max_gap if max_gap is None else max_gap, [*self.front_[0].gaps])
        increase = self.max_error_increase if max_error_increase is None else max_error_increase
        return self.at(self.front_.find(bounds, confidence, read_increase(increase)))

    def at(self, point: int) -> Self:
        """A point of the front as a fitted classifier of its own."""
        return copy.copy(self).use(point)

    def use(self, point: int) -> Self:
        """Make a point of the front what ``predict`` uses."""
        check_is_fitted(self, "front_")
        require_whole(point=point)
        if not -len(self.front_) <= point < len(self.front_):
            raise IndexError(
                f"point must be a place on the front of {len(self.front_)} points, got {point}."
            )
        self.point_ = range(len(self.front_))[point]
        return self

    def decision_function(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """By how much the point decides for the last class [n], or for each class [n, c].

        The sign, or the largest, is the decision. It is no log-odds of the label: for its
        probability see :meth:`predict_proba`.
        ``sensitive_features`` are needed with ``group_thresholds``, and refused without.
        """
        x, groups = self._encode(X, sensitive_features)
        with self._at_work(len(x)):
            return self.front_.scores(self.point_, x, groups)

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Calibrated probabilities of the label [n, c].

        With ``search="postprocess"`` they are those of the models below the rules, the same at
        every point: the decision of a fair point is not the likelier label for everybody.
        """
        x, groups = self._encode(X, sensitive_features)
        with self._at_work(len(x)):
            return self.front_.probabilities(self.point_, x, groups)

    def predict(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Class of each row."""
        x, groups = self._encode(X, sensitive_features)
        with self._at_work(len(x)):
            return self.classes_[self.front_.decide(x, groups, points=[self.point_])[0]]

    def predict_with_margins(
        self, X: Any, *, sensitive_features: Any = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What ``predict``, ``predict_proba`` and ``decision_function`` give, at the cost of one.

        The table is encoded once, and the models run once.
        """
        x, groups = self._encode(X, sensitive_features)
        with self._at_work(len(x)):
            scores, probabilities = self.front_.outputs(self.point_, x, groups)
        return self.classes_[decide_by_scores(scores)], probabilities, scores

    def decide_all(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Class of each row by every point of the front, [points, n].

        The table is encoded once, and models that points share run once, so that this is much
        faster than ``at(point).predict(X)`` in turn; the decisions are the same. Several threads
        may call it at a time.
        """
        x, groups = self._encode(X, sensitive_features)
        with self._at_work(len(x)):
            return self.classes_[self.front_.decide(x, groups)]

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None
    ) -> float:
        """Accuracy; ``sensitive_features`` are used with ``group_thresholds`` only."""
        check_indexes(X=X, y=y, sample_weight=sample_weight)
        decided = self.predict(X, sensitive_features=self._where_needed(sensitive_features))
        labels = read_labels(y, len(decided))
        weight = read_weights(sample_weight, len(decided))
        return float(accuracy_score(labels, decided, sample_weight=weight))

    def audit(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        tolerance: float = 0.05,
        confidence: float = 0.95,
        min_count: float = 10,
    ) -> Audit:
        """Rates of groups, gaps and verdicts on rows that ``fit`` has not seen.

        Criteria and favorable label are those of the classifier, so that of two classes all rates
        are those of the favorable one, as on ``front_``.

        Parameters
        ----------
        X, y, sensitive_features, sample_weight
            As for ``fit``.
        tolerance, confidence, min_count
            As for :func:`apfex.audit`.

        Returns
        -------
        Audit
            ``gaps`` and ``groups`` for each attribute, each pair and the crossing.
        """
        rows = read_audit_rows(
            self,
            X,
            y,
            sensitive_features=sensitive_features,
            sample_weight=sample_weight,
            tolerance=tolerance,
            confidence=confidence,
            min_count=min_count,
        )
        x, groups = self._encode(X, self._where_needed(sensitive_features))
        with self._at_work(len(x)):
            decided = self.front_.decide(x, groups, points=[self.point_])[0]
        return rows.audit(decided)

    def compare(self, i: int, j: int, X: Any, *, sensitive_features: Any = None) -> pd.DataFrame:
        """Whose decision flips from one point of the front to another.

        Parameters
        ----------
        i, j : int
            Places on the front: from the first to the second.
        X : table or array of shape [n, d]
        sensitive_features : column, table or mapping, optional
            Flips are counted by the groups of its crossing; without, and without ``sensitive``
            columns in ``X``, over all rows.

        Returns
        -------
        pandas.DataFrame
            A row per group: ``group``, ``count``, ``changed``, ``gained`` and ``lost`` (the
            favorable label), ``net_share`` (gained less lost, of all its rows).
        """
        check_is_fitted(self, "front_")
        X = read_features(X)
        check_indexes(X=X, sensitive_features=sensitive_features)
        groups = read_groups_if_there(X, sensitive_features, self.sensitive, self.include_sensitive)
        places = [self.at(point).point_ for point in (i, j)]
        x, codes = self._encode(X, self._where_needed(sensitive_features))
        favorable = class_code(self.classes_, self.front_.favorable_label)
        with self._at_work(len(x)):
            decided = self.front_.decide(x, codes, points=places)
        return compare_decisions(decided, groups, favorable)

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Store the whole front in a folder, from which :func:`apfex.load` has it back exactly.

        Parameters
        ----------
        folder : str or path
            One that is not there yet.
        overwrite : bool
            Whether to replace what was saved there before, once the new one is whole.

        Returns
        -------
        Path
            Of the folder: arrays in safetensors, all else in JSON (trees in XGBoost's own), no
            pickle. Of a module of your own class the numbers are stored, and not the code, and of
            a function nothing. Classifiers of scikit-learn's form are stored by skops
            (``pip install "apfex[skops]"``).
        """
        check_is_fitted(self, "front_")
        if type(self) is not APFExClassifier:
            raise TypeError(
                f"save knows APFExClassifier alone, got its subclass {type(self).__name__}; use "
                "joblib."
            )
        stored = StoredModel(self.fitted_, self.point_, self.get_params(deep=False))
        return save_model(folder, stored, needed=_NEEDED, overwrite=overwrite)

    def to_onnx(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the point in use as an ONNX file, from the columns of a table to the label.

        Parameters
        ----------
        path : str or path
            One that is not there yet.
        overwrite : bool
            Whether to replace a file that is there, once the new one is whole.

        Returns
        -------
        Path
            Of the file. Its inputs are the columns: numbers float64 [n, 1], with NaN where they are
            missing, texts [n, 1]; one matrix "X" where ``fit`` was given an array of numbers; with
            ``group_thresholds`` also "group", places among the groups. Its metadata ``"apfex"``
            list them, and say how a missing text is written. Outputs are "label",
            "probabilities" and "scores".

        Notes
        -----
        Networks and linear models give the scores of ``decision_function`` up to 1e-9; trees, and
        modules of yours, which count in float32, up to 1e-4. Modules of a class of your own, and
        rules on top of a model of yours (``init`` of any kind, or a classifier as ``model``), are
        refused. Needs the package onnx: ``pip install "apfex[onnx]"``.
        """
        check_is_fitted(self, "front_")
        return export_onnx(self.fitted_, self.point_, path, overwrite=overwrite)

    def _repr_html_inner(self) -> str:
        """Scikit-learn's picture of the settings, and the front below it."""
        return self._with_front(super()._repr_html_inner())

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """The same for notebooks."""
        bundle = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] = self._with_front(bundle["text/html"])
        return bundle

    def _with_front(self, html: str) -> str:
        is_fitted = hasattr(self, "fitted_")
        return f"{html}\n{front_as_html(self.front_, self.point_)}" if is_fitted else html

    def __sklearn_clone__(self) -> Self:
        """An unfitted copy; a fitted ``init`` is shared, as a clone of it would not be fitted."""
        without: Any = copy.copy(self)
        without.init = None
        made: Any = BaseEstimator.__sklearn_clone__(without)
        made.init = self.init
        return made

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that missing values and categories are fine."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def _encode(self, X: Any, sensitive_features: Any) -> tuple[InputRows, torch.Tensor | None]:
        """Inputs of models, and the groups of the rows where thresholds differ by group."""
        check_is_fitted(self, "front_")
        X = read_features(X)
        groups = read_groups_at_predict(
            self.fitted_.groups, X, sensitive_features, self.sensitive, self.include_sensitive
        )
        if self.sensitive is not None and not self.include_sensitive:
            X = drop_sensitive(X, self.sensitive)
        elif not self._has_columns_of_fit(X):  # which says what is wrong
            validate_data(self, X, skip_check_array=True, reset=False)
        with own_modes():
            x = self.fitted_.open(X)
        return x, None if groups is None else torch.from_numpy(groups)

    def _has_columns_of_fit(self, X: Any) -> bool:
        """Whether the columns have the names of those of ``fit``, in the same order."""
        names = getattr(self, "feature_names_in_", None)
        return names is not None and list(getattr(X, "columns", ())) == names.tolist()

    @contextmanager
    def _at_work(self, n_rows: int) -> Iterator[None]:
        """Threads for so many rows, and torch as our models take it."""
        with own_modes(), use_threads(thread_count(self.n_jobs, n_rows)):
            yield

    def _where_needed(self, sensitive_features: Any) -> Any:
        """What ``predict`` takes of sensitive features that are given for a measurement."""
        check_is_fitted(self, "front_")
        return None if self.fitted_.groups is None else sensitive_features

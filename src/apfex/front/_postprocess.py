"""Postprocessing: points share their models, and differ in the rules that decide by them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import final

import numpy as np
import torch
from torch import Tensor, nn

from apfex.front._candidates import (
    Candidate,
    SearchResult,
    decisions_of,
    evaluate,
    evaluate_scores,
)
from apfex.front._criteria import check_measurable
from apfex.front._model_encoder import ModelEncoder, PreparedRows, prepare_rows
from apfex.front._progress import Show, progress
from apfex.front._rows import (
    Rows,
    TableEncoders,
    ValidationRows,
    check_enough,
    encode,
    split,
    strata,
)
from apfex.front._settings import SearchSettings
from apfex.groups import grouping_name
from apfex.history import History, StepRecord
from apfex.models import (
    GapWeights,
    InitModel,
    JointModel,
    JointRows,
    OutOfFoldPredictions,
    RuleModel,
    fit_joint_model,
    fit_rules,
    given_groups,
    rule_scores,
    rules_at_rate,
)

_RULES_PER_MEMBER = 3
_GRID = {"largest": 4.0, "steps": 7}


def search_rules(rows: Rows, settings: SearchSettings, seed: int) -> SearchResult:
    """Fit rules to some rows, and measure them on others."""
    check_enough(rows)
    crosses = settings.crosses(len(rows.y))
    everything = np.arange(len(rows.y))
    parts = (everything, everything) if crosses else split(rows, settings.validation_fraction, seed)
    validation = rows.validation(parts[1])
    check_measurable(validation, settings.criteria)
    prepared = prepare_rows(rows, parts[0], settings, seed)
    steps = prepared.steps
    with progress(settings.verbose, steps, settings.figures) as show:
        fitted = _JointFit.to(rows, parts[0], prepared, settings, show)
        rules, history = fitted.rules_with_history()
        if settings.positive_rate is not None:
            rules = fitted.at_rate(rules, rows, parts[1])
        rule_set = RuleSet(fitted.model, rules)
        decisions = fitted.cross_decide() if crosses else fitted.decide(rules, rows, parts[1])
        evaluated = evaluate(decisions, validation, settings.criteria, settings.scoring)
        show(steps, evaluated.best)
    trivial = evaluated.trivial | fitted.is_constant(rule_set)
    epochs, is_finite = np.full(len(trivial), steps), np.full(len(trivial), fitted.is_finite())
    candidates = replace(evaluated, trivial=trivial).candidates(epochs, rule_set, is_finite)
    if fitted.starts_from_init:
        plain = (fitted.gap_weights.weights == 0).all(1)
        candidates = [c for c in candidates if not plain[c.member]]
        candidates += fitted.init_candidate(rows, parts[1], validation)
    return SearchResult(candidates, validation, prepared.encoder, history, fitted.objectives(rows))


@final
@dataclass(frozen=True, eq=False)
class RuleSet:
    """All rules of one fit, and the model that they decide by."""

    model: JointModel
    rules: Tensor
    """[b, j, k, c]"""

    def member(self, index: int) -> nn.Module:
        """A rule with its models as a module."""
        return RuleModel(self.model, self.rules[index])


@final
@dataclass(frozen=True, eq=False)
class _InitMember:
    """The user's own model, in the place of the rule without gaps."""

    model: InitModel

    def member(self, index: int) -> nn.Module:
        """The model, wherever it stands."""
        del index
        return self.model


@dataclass(frozen=True, eq=False)
class _JointFit:
    """What the rules of one fit are made from."""

    encoder: TableEncoders | ModelEncoder
    model: JointModel
    predictions: OutOfFoldPredictions
    folds: Tensor
    gap_weights: GapWeights
    parents: Sequence[Tensor]
    settings: SearchSettings

    @staticmethod
    def to(
        rows: Rows,
        part: np.ndarray,
        prepared: PreparedRows,
        settings: SearchSettings,
        show: Show,
    ) -> _JointFit:
        """Train the models on some of the rows."""
        x = prepared.x
        targets = torch.from_numpy(strata(rows)[part]).to(x.device)
        folds = torch.from_numpy(prepared.folds).to(x.device)
        weight = rows.sample_weight
        weight = None if weight is None else torch.from_numpy(weight[part]).to(x)
        shape = (1 if rows.crossing is None else len(rows.crossing), len(rows.classes))
        done = count(1)
        model, out_of_fold = fit_joint_model(
            JointRows(x, targets, shape, folds, weight),
            prepared.learners,
            lambda: show(next(done), []),
        )
        predictions = OutOfFoldPredictions(out_of_fold, targets, weight)
        n_rules = _RULES_PER_MEMBER * settings.n_members
        return _JointFit(
            prepared.encoder,
            model,
            predictions.given_groups() if settings.group_thresholds else predictions,
            folds,
            settings.gap_weights(n_rules, len(rows.groupings), **_GRID),
            [torch.from_numpy(parents).to(x.device) for parents in _parents(rows)],
            settings,
        )

    def rules(
        self,
        part: Tensor | None = None,
        on_step: Callable[[int, Tensor, Tensor], None] | None = None,
    ) -> Tensor:
        """Rules [b, j, k, c] by all predictions, or by those of some rows."""
        known = self.predictions if part is None else self.predictions.take(part)
        return fit_rules(
            known,
            self.gap_weights,
            self.parents,
            costs=self.settings.scoring.costs_of(known.label_shares()),
            selection_rate=self.settings.positive_rate,
            on_step=on_step,
        )

    def rules_with_history(self) -> tuple[Tensor, History]:
        """Rules by all predictions, and their error, gaps and gradients step by step.

        The weight of the error is 1; weights do not change on the way, as no strategy chooses them.
        """
        of_gaps = self.gap_weights.weights
        weights = torch.cat([of_gaps.new_ones(len(of_gaps), 1), of_gaps], 1)
        history = History(weights.shape[1], window=1, members=weights.shape[:1], trace=True)

        def record(_: int, losses: Tensor, norms: Tensor) -> None:
            known = losses.nan_to_num(torch.nan, torch.nan)
            history.record(StepRecord(known, weights, None, norms))

        return self.rules(on_step=record), history

    def objectives(self, rows: Rows) -> list[str]:
        """Names of the error and of the gaps."""
        names = [grouping_name(groups.attributes) for groups in rows.groupings]
        rates = [self.settings.criteria.named(rate) for rate in self.gap_weights.rates]
        return ["error", *(f"{rate} gap by {name}" for name in names for rate in rates)]

    def is_constant(self, rule_set: RuleSet) -> np.ndarray:
        """Which rules decide alike for all rows: what is handed out is not what was measured."""
        decided = decisions_of(rule_scores(rule_set.rules, self.predictions.probabilities))
        return (decided == decided[:, :1]).all(1).cpu().numpy()

    def is_finite(self) -> bool:
        """Whether the training has not diverged."""
        return bool(self.predictions.probabilities.isfinite().all())

    def cross_decide(self) -> Tensor:
        """Decisions [b, n] on all rows, each by a model and rules that were fitted without it.

        The rules saw probabilities of other rows, by models that had learnt from this one.
        """
        decided = torch.empty(self.gap_weights.n_members, len(self.folds), dtype=torch.int64)
        decided = decided.to(self.folds.device)
        for fold in self.folds.unique():
            others = self.folds == fold
            rules = self.rules(~others)
            probabilities = self.predictions.probabilities[others]
            decided[:, others] = decisions_of(rule_scores(rules, probabilities))
        return decided

    def at_rate(self, rules: Tensor, rows: Rows, part: np.ndarray) -> Tensor:
        """Rules that choose the share asked for by all models together.

        Each model by itself is surer of its guesses, so that more of them are extreme.
        """
        q, rate = self.probabilities(rows, part), self.settings.positive_rate
        assert rate is not None
        weight = torch.from_numpy(rows.validation(part).weight).to(q)
        return rules_at_rate(rules, q, weight / weight.sum(), rate)

    @property
    def starts_from_init(self) -> bool:
        """Whether the user's own model takes the place of the rule without gaps.

        With costs, or a fixed share of favorable decisions, that rule decides otherwise.
        """
        shares = self.predictions.label_shares()
        costs = self.settings.scoring.costs_of(shares)
        return self.settings.init is not None and costs is None and not self.settings.positive_rate

    def init_candidate(
        self, rows: Rows, part: np.ndarray, validation: ValidationRows
    ) -> list[Candidate]:
        """The user's own model as it decides, if its gaps can be measured."""
        assert isinstance(self.encoder, ModelEncoder)
        model = self.encoder.init_model(self.model)
        scores = model(encode(self.encoder, rows, part, self.settings))
        scores = scores.squeeze(1) if scores.shape[1] == 1 else scores
        found, _ = evaluate_scores(
            scores.unsqueeze(0), np.zeros(1, int), validation, self.settings, _InitMember(model)
        )
        return [replace(candidate, stays=True) for candidate in found]

    def decide(self, rules: Tensor, rows: Rows, part: np.ndarray) -> Tensor:
        """Decisions [b, n] on other rows."""
        return decisions_of(rule_scores(rules, self.probabilities(rows, part)))

    def probabilities(self, rows: Rows, part: np.ndarray) -> Tensor:
        """Probabilities [n, k, c] of some rows, by all models together."""
        x = encode(self.encoder, rows, part, self.settings)
        with torch.no_grad():
            q = torch.cat([self.model(chunk) for chunk in x.split(2**14)])
        if self.settings.group_thresholds and rows.crossing is not None:
            q = given_groups(q, torch.from_numpy(rows.crossing.codes[part]).to(q.device))
        return q


def _parents(rows: Rows) -> list[np.ndarray]:
    """For each grouping the group that a cell of the crossing belongs to."""
    if rows.crossing is None:
        return []
    found = []
    for grouping in rows.groupings:
        parents = np.zeros(len(rows.crossing), dtype=np.int64)
        parents[rows.crossing.codes] = grouping.codes
        found.append(parents)
    return found

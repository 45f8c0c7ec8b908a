"""Postprocessing: points share their models, and differ in the rules that decide by them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import final

import numpy as np
import torch
from torch import Tensor, nn

from apfex.front._candidates import Candidate, SearchResult, check_measurable, score
from apfex.front._encoders import TableEncoders, encode, fit_encoders
from apfex.front._rows import Rows, check_enough, deal, split, strata
from apfex.front._settings import SearchSettings
from apfex.front._tracking import RuleHistory, Show, progress
from apfex.groups import grouping_name
from apfex.models import (
    GapWeights,
    JointLearner,
    JointModel,
    JointRows,
    OutOfFoldPredictions,
    RuleModel,
    fit_joint_model,
    fit_rules,
    given_groups,
    rule_scores,
)

_RULES_PER_MEMBER = 3
_GRID = {"largest": 4.0, "steps": 7}


def search_rules(rows: Rows, settings: SearchSettings, seed: int) -> SearchResult:
    """Fit rules to some rows, and measure them on others."""
    check_enough(rows)
    crosses = settings.crosses(len(rows.y))
    everything = np.arange(len(rows.y))
    parts = (everything, everything) if crosses else split(rows, settings.validation_fraction, seed)
    held = rows.validation(parts[1])
    check_measurable(held, settings.criteria)
    inputs = fit_encoders(rows, parts[0], settings)
    kinds = inputs.kinds(settings, len(parts[0]), seed)
    steps = sum(kind.steps for kind in kinds)
    with progress(settings.verbose, steps) as show:
        fitted = _JointFit.to(rows, parts[0], inputs, kinds, settings, seed, show)
        history = fitted.history(rows)
        rule_set = RuleSet(fitted.model, fitted.rules(watch=history.watch))
        decisions = fitted.cross_decide() if crosses else fitted.decide(rule_set, rows, parts[1])
        scored = score(decisions, held, settings.criteria, settings.by)
        show(steps, scored.best)
    trivial = scored.trivial | fitted.is_constant(rule_set)
    small = decisions.to(torch.int16).cpu().numpy()
    candidates = [
        Candidate(
            int(rule),
            steps,
            small[rule],
            scored.values[rule],
            bool(trivial[rule]),
            rule_set,
        )
        for rule in np.flatnonzero(fitted.is_finite() & np.isfinite(scored.values).all(1))
    ]
    return SearchResult(candidates, held, fitted.encoder, history)


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


@dataclass(frozen=True, eq=False)
class _JointFit:
    """What the rules of one fit are made from."""

    encoder: TableEncoders
    model: JointModel
    evidence: OutOfFoldPredictions
    folds: Tensor
    aims: GapWeights
    parents: Sequence[Tensor]
    settings: SearchSettings

    @staticmethod
    def to(
        rows: Rows,
        part: np.ndarray,
        inputs: TableEncoders,
        kinds: Sequence[JointLearner],
        settings: SearchSettings,
        seed: int,
        show: Show,
    ) -> _JointFit:
        """Train the models on some of the rows."""
        x = encode(inputs, rows, part, settings)
        cells = torch.from_numpy(strata(rows)[part]).to(x.device)
        folds = torch.from_numpy(deal(strata(rows)[part], settings.n_folds, seed)).to(x.device)
        weight = rows.sample_weight
        weight = None if weight is None else torch.from_numpy(weight[part]).to(x)
        shape = (1 if rows.crossing is None else len(rows.crossing), len(rows.classes))
        done = count(1)
        model, unseen = fit_joint_model(
            JointRows(x, cells, shape, folds, weight), kinds, lambda: show(next(done), [])
        )
        evidence = OutOfFoldPredictions(unseen, cells, weight)
        return _JointFit(
            inputs,
            model,
            evidence.given_groups() if settings.group_thresholds else evidence,
            folds,
            settings.aims(_RULES_PER_MEMBER * settings.n_members, len(rows.groupings), **_GRID),
            [torch.from_numpy(parents).to(x.device) for parents in _parents(rows)],
            settings,
        )

    def rules(
        self, part: Tensor | None = None, watch: Callable[[int, Tensor, Tensor], None] | None = None
    ) -> Tensor:
        """Rules [b, j, k, c] by all that is known, or by some of the rows."""
        evidence = self.evidence if part is None else self.evidence.take(part)
        weight = _class_weight(evidence) if self.settings.by == "balanced_error" else None
        return fit_rules(evidence, self.aims, self.parents, class_weight=weight, on_step=watch)

    def history(self, rows: Rows) -> RuleHistory:
        """An empty record of how the rules come about."""
        names = [grouping_name(groups.attributes) for groups in rows.groupings]
        rates = [self.settings.criteria.named(rate) for rate in self.aims.rates]
        gaps = [f"{rate} gap by {name}" for name in names for rate in rates]
        return RuleHistory(["error", *gaps], self.aims.weights)

    def is_constant(self, rule_set: RuleSet) -> np.ndarray:
        """Which rules decide alike for all rows: what is handed out is not what was measured."""
        decided = _decisions(rule_set.rules, self.evidence.probabilities)
        return (decided == decided[:, :1]).all(1).cpu().numpy()

    def is_finite(self) -> bool:
        """Whether the training has not diverged."""
        return bool(self.evidence.probabilities.isfinite().all())

    def cross_decide(self) -> Tensor:
        """Decisions [b, n] on all rows, each by a model and rules that were fitted without it.

        The rules saw probabilities of other rows, by models that had learnt from this one.
        """
        decided = torch.empty(self.aims.n_members, len(self.folds), dtype=torch.int64)
        decided = decided.to(self.folds.device)
        for fold in self.folds.unique():
            others = self.folds == fold
            rules = self.rules(~others)
            decided[:, others] = _decisions(rules, self.evidence.probabilities[others])
        return decided

    def decide(self, rule_set: RuleSet, rows: Rows, part: np.ndarray) -> Tensor:
        """Decisions [b, n] on other rows."""
        x = encode(self.encoder, rows, part, self.settings)
        with torch.no_grad():
            q = torch.cat([self.model(chunk) for chunk in x.split(2**14)])
        if self.settings.group_thresholds and rows.crossing is not None:
            q = given_groups(q, torch.from_numpy(rows.crossing.codes[part]).to(q.device))
        return _decisions(rule_set.rules, q)


def _decisions(rules: Tensor, probabilities: Tensor) -> Tensor:
    scores = rule_scores(rules, probabilities)
    return (scores > 0).long() if scores.ndim == 2 else scores.argmax(2)


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


def _class_weight(evidence: OutOfFoldPredictions) -> Tensor:
    """Classes count alike, so rows of a rare one count more."""
    c = evidence.probabilities.shape[2]
    own = torch.nn.functional.one_hot(evidence.targets % c, c).to(evidence.probabilities)
    return 1 / (c * (evidence.shares() @ own).clamp_min(1e-6))

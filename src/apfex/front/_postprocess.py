"""Postprocessing: points share their models, and differ in the rules that decide by them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from typing import Any, final

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
from apfex.front._cells import CellGroupings
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
)
from apfex.front._settings import SearchSettings
from apfex.groups import Groups
from apfex.models import (
    NOWHERE,
    Aims,
    Checkpoint,
    InitModel,
    JointModel,
    OutOfFoldPredictions,
    check_codes,
    fit_joint_model,
    kept,
)
from apfex.rules import (
    ExploredRules,
    RuleModel,
    RuleProblem,
    explore_rules,
    rule_scores,
    rules_at_rate,
)

_TRUSTED_ROWS = 200.0
"""With so many rows of a group and label, their own labels count as much as what all rows tell."""
_RESAMPLES = 20
"""Of the training rows, by which rules are compared."""


def search_rules(
    rows: Rows, settings: SearchSettings, seed: int, checkpoint: Checkpoint = NOWHERE
) -> SearchResult:
    """Fit rules to some rows, and measure them on others."""
    check_enough(rows)
    crosses = settings.crosses(len(rows.y))
    everything = np.arange(len(rows.y))
    parts = (everything, everything) if crosses else split(rows, settings.validation_fraction, seed)
    validation = rows.validation(parts[1])
    check_measurable(validation, settings.criteria)
    prepared = prepare_rows(rows, parts[0], settings, seed, checkpoint)
    steps = prepared.steps
    with progress(settings.verbose, steps, settings.figures) as show:
        fitted = JointFit.to(rows, parts[0], prepared, settings, seed, show, checkpoint)
        of_validation = cache(lambda: fitted.probabilities(rows, parts[1]))
        explored = fitted.explore(checkpoint)
        rules = explored.rules
        if settings.positive_rate is not None:
            rules = fitted.at_rate(rules, of_validation(), validation)
        decisions = (
            kept(
                checkpoint,
                "decisions",
                fitted.cross_decide,
                lambda found: check_codes(found, (len(rules), len(rows.y)), len(rows.classes)),
            ).to(rules.device)
            if crosses
            else decisions_of(rule_scores(rules, of_validation()))
        )
        evaluated = evaluate(decisions, validation, settings.criteria, settings.scoring)
        show(steps, evaluated.best)
    trivial = evaluated.trivial | fitted.is_constant(rules)
    evaluated = replace(evaluated, trivial=trivial)
    ranks = fitted.ranks(rules, rows.validation(parts[0]))
    candidates, b = [], fitted.aims.n_members
    for start in range(0, len(rules), b):
        look = slice(start, start + b)
        taken, is_finite = explored.steps[look].numpy(), np.full(b, fitted.is_finite())
        rule_set = RuleSet(fitted.model, rules[look])
        candidates += evaluated.part(look).candidates(taken, rule_set, is_finite, ranks[:, look])
    if fitted.starts_from_init:
        candidates = [c for c in candidates if c.member]  # the first one is in its place
        candidates += fitted.init_candidate(rows, parts[1], validation)
    encoder, objectives = prepared.encoder, fitted.objectives(rows.groupings)
    return SearchResult(candidates, validation, encoder, explored.trace, objectives)


@final
@dataclass(frozen=True, eq=False)
class RuleSet:
    """Rules of all members at one look, and the model that they decide by."""

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


@final
@dataclass(frozen=True, eq=False)
class JointFit:
    """What the rules of one fit are made from."""

    encoder: TableEncoders | ModelEncoder
    model: JointModel
    predictions: OutOfFoldPredictions
    folds: Tensor
    aims: Aims
    parents: Sequence[Tensor]
    settings: SearchSettings
    seed: int

    @staticmethod
    def to(
        rows: Rows,
        part: np.ndarray,
        prepared: PreparedRows,
        settings: SearchSettings,
        seed: int,
        show: Show,
        checkpoint: Checkpoint,
    ) -> JointFit:
        """Train the models on some of the rows."""
        x = prepared.x
        folds = torch.from_numpy(prepared.folds).to(x.device)
        many = rows.cells(part)
        joint = rows.joint(part, x, folds, many)
        checkpoint.match(joint.facts)
        done = count(1)
        model, out_of_fold = fit_joint_model(
            joint, prepared.learners, lambda: show(next(done), []), checkpoint
        )
        if many is not None and settings.group_thresholds:
            model = model.of_cells(torch.from_numpy(many.cells).to(x.device))
        predictions = OutOfFoldPredictions(out_of_fold, joint.targets, joint.sample_weight)
        return JointFit(
            prepared.encoder,
            model,
            predictions.given_groups() if settings.group_thresholds else predictions,
            folds,
            settings.aims(len(rows.groupings)),
            [torch.from_numpy(parents) for parents in _parents(rows, many)],
            settings,
            seed,
        )

    def explore(self, checkpoint: Checkpoint) -> ExploredRules:
        """Rules by all predictions."""
        problem, strategies = self._problem(self.predictions), self.settings.strategies

        def take(state: Any) -> ExploredRules:
            return ExploredRules.from_state_dict(state, problem, self.aims)

        found = checkpoint.read("rules", take)
        if found is None:
            [found] = explore_rules([problem], self.aims, strategies, seed=self.seed)
            checkpoint.write("rules", found.state_dict())
        return found

    def _problem(self, predictions: OutOfFoldPredictions) -> RuleProblem:
        """What rules by some of the predictions are judged by."""
        return RuleProblem.of(
            predictions,
            self.aims.rates,
            self.parents,
            costs=self.settings.scoring.costs_of(predictions.label_shares()),
            selection_rate=self.settings.positive_rate,
            trusted_rows=_TRUSTED_ROWS,
        )

    def ranks(self, rules: Tensor, rows: ValidationRows) -> np.ndarray:
        """Loss and gaps [r, b, 1 + criteria] on the training rows, by models that did not see them.

        On resamples of the rows, to tell which rule may be best on others like these. What few rows
        of a group and label tell of a gap is shrunken towards what the models know.
        """
        predictions, scoring = self.predictions, self.settings.scoring
        decisions = decisions_of(rule_scores(rules, predictions.probabilities))
        of_rows, shares = scoring.row_losses(decisions, rows), predictions.shares().double()
        fixed = None if of_rows is not None else scoring.losses(decisions, rows)
        gaps = self._resampled_gaps(decisions, rows)
        found = []
        for times in _resamples(len(shares), self.seed).to(shares):
            weight = times * shares
            losses = fixed if of_rows is None else of_rows @ (weight / weight.sum())
            assert losses is not None
            found.append(torch.cat([losses.unsqueeze(1).cpu(), gaps(times).cpu()], 1))
        return torch.stack(found).numpy()

    def _resampled_gaps(
        self, decisions: Tensor, rows: ValidationRows
    ) -> Callable[[Tensor], Tensor]:
        """Gaps [b, criteria] of decisions [b, n] where each row counts so many times [n]."""
        criteria, predictions = self.settings.criteria, self.predictions
        if not criteria.names:
            return lambda _: predictions.shares().new_zeros(len(decisions), 0).double()
        problem = RuleProblem.of(
            predictions, criteria.rates, self.parents, trusted_rows=_TRUSTED_ROWS
        )
        hard = decisions.unsqueeze(1)
        if rows.is_multiclass:
            hard = hard == torch.arange(rows.n_classes, device=hard.device)[:, None]
        hard = hard.to(problem.q)
        row = predictions.row_share()

        def gaps(times: Tensor) -> Tensor:
            counts = problem.resampled(times).counts(hard)
            return criteria.gaps_of([found.double() for found in counts], row)

        return gaps

    def objectives(self, groupings: Sequence[Groups]) -> list[str]:
        """Names of the error and of the gaps."""
        return ["error", *self.settings.criteria.gap_names(groupings)]

    def is_constant(self, rules: Tensor) -> np.ndarray:
        """Which rules decide alike for all rows: what is handed out is not what was measured."""
        decided = decisions_of(rule_scores(rules, self.predictions.probabilities))
        return (decided == decided[:, :1]).all(1).cpu().numpy()

    def is_finite(self) -> bool:
        """Whether the training has not diverged."""
        return bool(self.predictions.probabilities.isfinite().all())

    def cross_decide(self) -> Tensor:
        """Decisions [b, n] on all rows, each by a model and rules that were fitted without it.

        The rules saw probabilities of other rows, by models that had learnt from this one.
        """
        taken = [self.folds == fold for fold in self.folds.unique()]
        problems = [self._problem(self.predictions.take(~others)) for others in taken]
        strategies = self.settings.strategies
        found = explore_rules(problems, self.aims, strategies, seed=self.seed, trace=False)
        decided = [
            decisions_of(rule_scores(explored.rules, self.predictions.probabilities[others]))
            for explored, others in zip(found, taken, strict=True)
        ]
        together = decided[0].new_empty(len(decided[0]), len(self.folds))
        for others, own in zip(taken, decided, strict=True):
            together[:, others] = own
        return together

    def at_rate(self, rules: Tensor, q: Tensor, rows: ValidationRows) -> Tensor:
        """Rules that choose the share asked for by all models together, on the validation rows.

        By their probabilities [n, k, c].

        Each model by itself is surer of its guesses, so that more of them are extreme; and all of
        them are surer of rows that they have learnt from, so that a threshold set by training rows
        would choose too few of the others.
        """
        rate = self.settings.positive_rate
        assert rate is not None
        weight = torch.from_numpy(rows.weight).to(q)
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
        """The user's own model as it decides, if its gaps can be measured; no member made it."""
        assert isinstance(self.encoder, ModelEncoder)
        model = self.encoder.init_model(self.model)
        scores = model(encode(self.encoder, rows, part, self.settings))
        scores = scores.squeeze(1) if scores.shape[1] == 1 else scores
        found, _ = evaluate_scores(
            scores.unsqueeze(0), np.zeros(1, int), validation, self.settings, _InitMember(model)
        )
        return [replace(candidate, member=-1, stays=True) for candidate in found]

    def probabilities(self, rows: Rows, part: np.ndarray) -> Tensor:
        """Probabilities [n, k, c] of some rows, by all models together."""
        x = encode(self.encoder, rows, part, self.settings)
        with torch.no_grad():
            q = torch.cat([self.model(chunk) for chunk in x.split(2**14)])
        if self.settings.group_thresholds and rows.crossing is not None:
            q = self.model.given(q, torch.from_numpy(rows.crossing.codes[part]).to(q.device))
        return q


def _resamples(n: int, seed: int) -> Tensor:
    """How often each of n rows counts in each resample (bootstrap by Poisson draws)."""
    generator = torch.Generator().manual_seed(seed)
    return torch.poisson(torch.ones(_RESAMPLES, n), generator=generator)


def _parents(rows: Rows, many: CellGroupings | None) -> list[np.ndarray]:
    """For each grouping the group that a cell of the crossing, or a group of cells, belongs to."""
    if rows.crossing is None:
        return []
    if many is not None:
        return many.parents(rows.groupings)
    found = []
    for grouping in rows.groupings:
        parents = np.zeros(len(rows.crossing), dtype=np.int64)
        parents[rows.crossing.codes] = grouping.codes
        found.append(parents)
    return found

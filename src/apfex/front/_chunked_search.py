"""The search for rules on rows that are not all in memory.

Models learn from all training rows, chunk by chunk. Rules have few numbers, so a bounded sample
of out-of-fold predictions fits them, in which small groups are whole. Every rule then decides for
all validation rows, of which counts are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from apfex.chunks import Chunk, ChunkedLearner, ChunkedRows, Part, out_of_fold
from apfex.front._candidates import SearchResult, decisions_of
from apfex.front._cells import CellGroupings
from apfex.front._criteria import check_measurable_counts
from apfex.front._dealing import Dealer
from apfex.front._decision_table import CountedRows, count_decisions
from apfex.front._postprocess import JointFit, RuleSet
from apfex.front._progress import progress
from apfex.front._rows import TableEncoders, ValidationRows, fit_encoders_to_summary
from apfex.front._settings import SearchSettings
from apfex.front._spooled_rows import RowFacts, SpooledRows, StreamedRows
from apfex.memory import free_memory, in_bytes, is_too_much
from apfex.models import NOWHERE, Checkpoint, JointModel, OutOfFoldPredictions, mix_learners
from apfex.rates import ConfusionCounts
from apfex.rules import rule_scores, rules_at_rate
from apfex.streams import StreamSettings

_DECISIONS = 2**19
"""Of all rules, that are in memory at a time."""
_TABLES = 4
"""Counts of what all rules decide that are in memory at a time."""


def search_stream(
    streamed: StreamedRows,
    settings: SearchSettings,
    streaming: StreamSettings,
    seed: int,
    folder: Path,
    checkpoint: Checkpoint = NOWHERE,
) -> SearchResult:
    """Encode the rows of a stream, keep them in files, and search rules on these."""
    facts, fraction = streamed.facts, settings.validation_fraction

    def deal() -> Dealer:
        return Dealer(facts.counts, fraction, streaming.rule_rows, settings.n_folds, seed)

    dealer, sample = deal(), streamed.sample
    check_measurable(facts, dealer.validation, settings)  # before anything is written
    by_labels = settings.has_networks and settings.bins_for(facts.n_rows) == "tree"
    if by_labels or settings.looks_first(facts.n_rows):
        sample = streamed.training_sample(deal())
    encoder = fit_encoders_to_summary(streamed.summary, sample, settings)
    many = CellGroupings.of(facts.crossing, dealer.training)
    joint = CellGroupings.targets(many, facts.shape)
    rows = SpooledRows(streamed, encoder, dealer, settings.n_folds, streaming, folder, joint)
    n = int(dealer.training.sum())
    learners = encoder.chunked_learners(settings, n, seed, folder)
    return search_chunks(rows, facts, many, learners, encoder, settings, seed, checkpoint)


def search_chunks(
    rows: ChunkedRows,
    facts: RowFacts,
    many: CellGroupings | None,
    learners: Sequence[ChunkedLearner],
    encoder: TableEncoders,
    settings: SearchSettings,
    seed: int,
    checkpoint: Checkpoint = NOWHERE,
) -> SearchResult:
    """Fit models and rules to rows in chunks, wherever they lie, and measure them on others.

    Parameters
    ----------
    rows : ChunkedRows
        Those of :class:`SpooledRows` are in files.
    facts : RowFacts
    many : CellGroupings or None
        What ``rows.joint`` was made of, where there are many cells.
    learners : sequence of ChunkedLearner
    encoder : TableEncoders
        Which the rows were encoded by.
    settings : SearchSettings
    seed : int
    checkpoint : Checkpoint, optional
        Where what is finished is kept.

    Returns
    -------
    SearchResult
        Its candidates hold tables of decisions, which its rows read.
    """
    steps, done = sum(learner.steps for learner in learners), count(1)
    with progress(settings.verbose, steps, settings.figures) as show:
        checkpoint.match(lambda: _facts_of(rows))
        fitted = [
            learner.fit(rows, lambda: show(next(done), []), checkpoint.part(f"learner{place}"))
            for place, learner in enumerate(learners)
        ]
        found = _RuleRows.of(rows, facts, many, fitted, encoder, settings, seed)
        explored = found.joint.explore(checkpoint)
        rules = explored.rules
        if settings.positive_rate is not None:
            rules = _at_rate(rules, rows, found.joint.model, settings, seed)
        tables = _decide(rules, rows, found.joint.model, facts, settings)
        sums = tables[:, 0].sum(-1)
        validation = CountedRows(sums, facts.groups, facts.groupings, facts.classes.tolist())
        values = validation.values(tables, settings.criteria, settings.scoring)
        show(steps, values[values[:, 0].argmin()].tolist())
    trivial = validation.trivial(tables) | found.joint.is_constant(rules)
    ranks = found.joint.ranks(rules, found.rows)
    candidates, b = [], found.joint.aims.n_members
    for start in range(0, len(rules) if found.joint.is_finite() else 0, b):
        look = slice(start, start + b)
        candidates += validation.candidates(
            tables[:, look],
            values[look],
            trivial[look],
            explored.steps[look].numpy(),
            RuleSet(found.joint.model, rules[look]),
            ranks[:, look],
        )
    objectives = found.joint.objectives(facts.groupings)
    return SearchResult(candidates, validation, encoder, explored.trace, objectives)


def _facts_of(rows: ChunkedRows) -> dict[str, Any]:
    """What is learnt from: all rows by group and label, and those by which rules are fitted."""
    parts: tuple[Part, ...] = ("training", "validation")
    counts = [torch.from_numpy(np.asarray(rows.counts(part))) for part in parts]
    facts: dict[str, Any] = {"numbers of rows": counts}
    for chunk in rows.chunks("rules"):
        for name, values in (
            ("inputs", chunk.x),
            ("labels or groups", chunk.targets),
            ("weights", chunk.weight),
        ):
            facts.setdefault(name, []).append(values)
    return facts


@final
@dataclass(frozen=True, eq=False)
class _RuleRows:
    """What rules are fitted by: out-of-fold predictions, and labels and groups of their rows."""

    joint: JointFit
    rows: ValidationRows

    @staticmethod
    def of(
        rows: ChunkedRows,
        facts: RowFacts,
        many: CellGroupings | None,
        fitted: Sequence[list[torch.nn.Module]],
        encoder: TableEncoders,
        settings: SearchSettings,
        seed: int,
    ) -> _RuleRows:
        """Predict the rows out of fold, and mix what the learners have learnt."""
        kept, parts = [], [[] for _ in fitted]
        for chunk in rows.chunks("rules"):
            kept.append((chunk.targets, chunk.folds, chunk.weight))
            for models, found in zip(fitted, parts, strict=True):
                found.append(out_of_fold(models, chunk))
        targets, folds, weight = (torch.cat(part) for part in zip(*kept, strict=True))
        each = [(m, torch.cat(p)) for m, p in zip(fitted, parts, strict=True)]
        learnt = rows.joint.of(targets)
        model, joint = mix_learners(each, learnt, weight, folds, rows.joint.shape)
        if many is not None and settings.group_thresholds:
            model = model.of_cells(torch.from_numpy(many.cells))
        device, n = settings.device, int(rows.counts("training").sum())
        sampled = n > len(targets)
        predictions = OutOfFoldPredictions(
            joint.to(device),
            learnt.to(device),
            weight.to(joint).to(device) if sampled or facts.weighted else None,
            n if sampled else None,
        )
        if settings.group_thresholds:
            predictions = predictions.given_groups()
        own = facts.parents() if many is None else many.parents(facts.groupings)
        parents = [torch.from_numpy(codes) for codes in own]
        aims = settings.aims(len(facts.groupings))
        return _RuleRows(
            JointFit(encoder, model, predictions, folds.to(device), aims, parents, settings, seed),
            _labelled(targets.numpy(), weight.numpy(), facts),
        )


def _labelled(targets: np.ndarray, weight: np.ndarray, facts: RowFacts) -> ValidationRows:
    """Labels and groups of rows, from their targets."""
    c = len(facts.classes)
    codes = targets // c
    parents = facts.parents()
    return ValidationRows(
        y=targets % c,
        groupings=[
            replace(grouping, codes=parent[codes])
            for grouping, parent in zip(facts.groupings, parents, strict=True)
        ],
        crossing=replace(facts.groups, codes=codes),
        sample_weight=weight,
        classes=facts.classes.tolist(),
    )


def _probabilities(model: JointModel, chunk: Chunk, settings: SearchSettings) -> Tensor:
    """Probabilities [n, k, c] of a chunk by all models together."""
    with torch.no_grad():
        q = model(chunk.x)
    return model.given(q, chunk.targets // q.shape[2]) if settings.group_thresholds else q


def _decide(
    rules: Tensor,
    rows: ChunkedRows,
    model: JointModel,
    facts: RowFacts,
    settings: SearchSettings,
) -> np.ndarray:
    """Tables [1 or 3, b, k, c, c] of what the rules decide for the validation rows."""
    own, (k, c) = rules.cpu(), rows.shape  # rows may stay where they are
    size = 8 * (3 if facts.weighted else 1) * len(own) * k * c * c
    if is_too_much(_TABLES * size):
        raise ValueError(
            f"sensitive_features must cross to fewer groups than {k:,}: what {len(own):,} rules "
            f"decide for them takes {_TABLES} tables of {in_bytes(size)} at a time, and "
            f"{in_bytes(free_memory())} are free; merge levels, or leave an attribute out."
        )
    at_once = max(256, _DECISIONS // len(own), k * c * c)

    def count(chunk: Chunk) -> np.ndarray:
        decided = decisions_of(rule_scores(own, _probabilities(model, chunk, settings)))
        weight = chunk.weight.numpy() if facts.weighted else None
        return count_decisions(decided.numpy(), chunk.targets.numpy(), weight, (k, c))

    def measure(chunk: Chunk) -> np.ndarray:
        first, *others = torch.arange(len(chunk)).split(at_once)
        total = count(chunk.take(first))
        for part in others:
            total += count(chunk.take(part))
        return total

    return rows.add_up("validation", measure)


def _at_rate(
    rules: Tensor, rows: ChunkedRows, model: JointModel, settings: SearchSettings, seed: int
) -> Tensor:
    """Rules that choose the share asked for.

    On the validation rows, or a sample of as many as rules are fitted by.
    """
    rate = settings.positive_rate
    assert rate is not None
    share = rows.counts("rules").sum() / max(1, rows.counts("validation").sum())
    generator, found = np.random.default_rng([seed, 4]), []
    for chunk in rows.chunks("validation"):
        taken = torch.from_numpy(generator.random(len(chunk)) < share).nonzero().squeeze(1)
        own = chunk.take(taken)
        found.append((_probabilities(model, own, settings), own.weight))
    q, weight = (torch.cat(part) for part in zip(*found, strict=True))
    q, weight = q.to(rules.device), weight.to(rules)
    return rules_at_rate(rules, q, weight / weight.sum(), rate)


def check_measurable(facts: RowFacts, validation: np.ndarray, settings: SearchSettings) -> None:
    """Refuse criteria that the validation rows cannot measure."""
    total = facts.counts.sum(0)
    if total.max() < 2:
        raise ValueError(
            "y must have two rows of a class, one to learn from and one to choose by, got "
            f"n_samples={int(total.sum())} of {len(total)} classes."
        )
    if not settings.criteria.names:
        return
    criteria, classes = settings.criteria, facts.classes.tolist()
    rows = CountedRows(validation[None], facts.groups, facts.groupings, classes)
    nothing = np.zeros((1, *validation.shape, len(classes)))
    nothing[0, :, :, 0] = validation  # whatever is decided
    counts: ConfusionCounts = rows.count(nothing, 0 if criteria.of_other_label else 1)
    check_measurable_counts(counts, facts.groupings, criteria, rows.n_rows)

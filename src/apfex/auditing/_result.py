"""``Audit``: what decisions do to groups, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np
import pandas as pd

from apfex.arguments import as_names, meant, require_numbers, require_whole
from apfex.auditing._diff import AuditChange, change_of_gaps, change_of_rates
from apfex.auditing._display import GapDisplay
from apfex.auditing._json import as_json, read_json
from apfex.auditing._plan import plan_rows
from apfex.auditing._settings import AuditSettings, check_bound, groupings_of
from apfex.auditing._show import as_html, as_markdown, as_text
from apfex.auditing._summary import AuditSummary, summarize
from apfex.auditing._thresholds import threshold_rates
from apfex.auditing._verdicts import Tested, ends_of, surely_above
from apfex.auditing._worst import count_worse_off, groups_below, worst_groups
from apfex.groups import grouping_name
from apfex.rates import ConfusionCounts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from plotly import graph_objects


@final
@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """Rates, gaps and verdicts of decisions; made by :func:`audit`.

    Attributes
    ----------
    gaps : pandas.DataFrame
        A row per criterion and grouping: ``criterion``, ``by``, ``gap``, ``lower``, ``upper``,
        ``noise_floor``, ``p_value``, ``p_adjusted``, ``verdict``; the groups at its ends,
        ``lowest``, ``lowest_rate``, ``highest``, ``highest_rate``; ``groups_compared`` of
        ``groups``; ``rests_on``, the cases of a *violation* that rests on fewer than five, such
        as "1 of 10 rows of sex=F", else None.
    groups : pandas.DataFrame
        A row per grouping, group and rate (and class, if there are more than two): ``by``,
        ``group``, a column for each attribute (missing where the grouping lacks it; ``group
        (attribute)`` where its name is taken), ``of`` (the rate's name), ``count`` (rows),
        ``numerator``, ``denominator`` (sums of weights), ``effective`` (the rows that these are
        worth), ``rate``, ``lower``, ``upper`` (Wilson), ``difference`` (to the rate of all
        rows), ``shrunken`` (empirical Bayes estimate for tiny groups; no verdict uses it) and
        ``in_gap`` (False where fewer than ``min_count`` rows count: shown, but left out of the
        gap).
    overall : pandas.DataFrame
        The same columns for all rows.
    thresholds : pandas.DataFrame or None
        With scores, a row per threshold, criterion and grouping: ``gap``, ``lowest`` and
        ``highest`` group with their rates, if scores from the threshold up were favorable.
    settings : AuditSettings
    notes : tuple of str
        What a reader should know.
    metrics : pandas.DataFrame or None
        A row per metric that was asked for, grouping (the first is "overall") and group:
        ``metric``, ``by``, ``group``, a column for each attribute, ``count``, ``value``,
        ``lower``, ``upper``, ``compared`` (False where fewer than ``min_count`` rows count, or
        the metric is not defined). Probabilities with labels have "brier" and "calibration"
        (share of the favorable label less the mean score) unasked.
    metric_gaps : pandas.DataFrame or None
        A row per metric and grouping: ``metric``, ``by``, ``gap``, ``lower``, ``upper``,
        ``lowest``, ``lowest_value``, ``highest``, ``highest_value``, ``groups_compared``,
        ``groups``. There is no verdict: the tolerance is one of rates.
    calibration : pandas.DataFrame or None
        With probabilities and labels, a row per grouping, group and bin of the scores: ``by``,
        ``group``, a column for each attribute, ``score_from``, ``score_to``, ``count``,
        ``mean_score``, ``observed`` (share of the favorable label), ``lower``, ``upper`` (Wilson).
    gaps_within : pandas.DataFrame or None
        With control features, the columns of ``gaps`` for each of their strata, which have
        columns of their own, and ``count``, the rows of the stratum.

    Examples
    --------
    >>> from apfex import audit
    >>> sex, decided = ["F"] * 200 + ["M"] * 200, [0, 0, 0, 1] * 50 + [0, 1] * 100
    >>> result = audit(None, decided, sensitive_features={"sex": sex}, criteria="dp")
    >>> result.gaps["verdict"].tolist()
    ['violation']
    >>> print(result)
    The gap exceeds the limit: the selection rate by sex differs by 25.0 points, 20.0 more than the
    limit of 5 points, and by at least 15.1 with 95% confidence. The clearest difference: sex=F has
    25.0%, sex=M 50.0%.
    <BLANKLINE>
    Audit of 400 decisions, 2 groups of sex; 37.5% favored (label 1); limit 0.05, 95% confidence
    <BLANKLINE>
    Gaps
    criterion  by     gap  interval        noise floor  p adjusted  groups compared  verdict
    dp         sex  0.250  0.151 to 0.368        0.040       0.001  2 of 2           violation
    <BLANKLINE>
    Worst-off groups
    sex  rows  favored  interval        to overall  clearly below
    F     200    25.0%  19.5% to 31.4%       -12.5  yes
    """

    gaps: pd.DataFrame
    groups: pd.DataFrame
    overall: pd.DataFrame
    thresholds: pd.DataFrame | None
    settings: AuditSettings
    notes: tuple[str, ...]
    _counts: ConfusionCounts = field(repr=False)
    _tested: tuple[Tested, ...] = field(repr=False)
    metrics: pd.DataFrame | None = None
    metric_gaps: pd.DataFrame | None = None
    calibration: pd.DataFrame | None = None
    gaps_within: pd.DataFrame | None = None

    @cached_property
    def summary(self) -> AuditSummary:
        """The worst verdict of all groupings and criteria, as a record with a plain ``text``."""
        return summarize(self, self._tested)

    @property
    def counts(self) -> ConfusionCounts:
        """The confusion counts of the full crossing, from which all of it follows."""
        return self._counts

    @property
    def n_rows(self) -> int:
        """Decisions that were audited."""
        return self._counts.n_rows

    @property
    def n_groups(self) -> int:
        """Groups of the crossing that occur."""
        return len(self._counts.groups)

    @property
    def attributes(self) -> tuple[str, ...]:
        """Sensitive attributes."""
        return self._counts.groups.attributes

    @property
    def share_favored(self) -> float:
        """Share of all rows that get the favorable label."""
        return self._counts.share_favored

    @property
    def is_approximate(self) -> bool:
        """Whether weights differ, so that counts are effective ones and intervals approximate."""
        return self._counts.weight is None

    @property
    def n_worse_off(self) -> int:
        """Groups of the crossing that get the favorable label clearly less often than all.

        The upper limit of their rate by Clopper and Pearson, corrected for the number of groups
        (Bonferroni), lies below the rate of all rows.
        """
        return count_worse_off(self._counts, self.settings.confidence)

    @cached_property
    def worse_off(self) -> pd.DataFrame:
        """Groups of every grouping that get the favorable label clearly less often than all.

        ``by``, ``group``, ``count`` and ``favored``, as in :meth:`worst`; single attributes come
        first, within a grouping the lowest rate. A large group of one attribute can be clear where
        the small groups of the crossing are not.
        """
        return groups_below(self._counts, self._groupings, self.settings.confidence)

    def worst(
        self, n: int = 5, *, by: str | Sequence[str] | None = None, only_below: bool = False
    ) -> pd.DataFrame:
        """The groups that get the favorable label least, as far as their rows can tell.

        Parameters
        ----------
        n : int
            How many.
        by : str or sequence of str, optional
            A grouping as in ``gaps``, or its attributes; the full crossing by default.
        only_below : bool
            Leave out groups that get it as often as all rows do, or more often.

        Returns
        -------
        pandas.DataFrame
            ``group``, a column for each attribute, ``count``, ``favored`` (rate of the favorable
            label), its Wilson interval ``lower`` and ``upper``; ``difference`` to all rows;
            ``clearly_below``, whether the upper limit by Clopper and Pearson, corrected for the
            number of groups, lies below the rate of all rows; of two attributes or more
            ``driver``, the attribute in which people who share all others fare better most
            clearly, and ``others``, their rate; None and NaN where none clearly do (corrected for
            the number of groups and attributes). Groups that are clearly below come first, then
            the others, each by ``favored``.
        """
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise ValueError(f"n must be a whole number of at least 1, got {n!r}.")
        attributes = self.attributes if by is None else self._attributes(by)
        worst: Any = worst_groups(self._counts, attributes, self.settings.confidence)
        if only_below:
            worst = worst[worst["difference"] < -1e-9].reset_index(drop=True)  # not by rounding
        return worst.head(n)

    def plan(self, max_gap: float | None = None, *, power: float = 0.8) -> pd.DataFrame:
        """How many more rows, of which groups, would settle what is not settled.

        Parameters
        ----------
        max_gap : float, optional
            The tolerance by default.
        power : float
            Chance that so many rows settle the verdict, if the rates are what they seem.

        Returns
        -------
        pandas.DataFrame
            A row per group that needs more: ``criterion``, ``by``, ``group``, ``count`` (rows
            now), ``more_rows`` (infinite where the gap lies at the bound, so that no number
            settles it), ``expected`` (the verdict that would come out). Empty where all is
            settled.

        Notes
        -----
        Taken for true are the shrunken rates: the raw gap of many small groups is mostly noise.
        If their gap exceeds the bound, the two groups that lie farthest apart get rows until the
        lower end passes it; else all groups until the upper end is below it. The law of the
        ends, given the rows there are, is simulated; the mix of labels within a group is kept.
        """
        max_gap = self.settings.tolerance if max_gap is None else max_gap
        check_bound("max_gap", max_gap)
        require_numbers(power=power)
        if not 0 < power < 1:
            raise ValueError(f"power must lie between 0 and 1, got {power}.")
        return plan_rows(self._tested, max_gap, power, self.settings.min_count)

    def diff(self, earlier: Audit) -> AuditChange:
        """What changed since an earlier audit of other rows, with intervals.

        Parameters
        ----------
        earlier : Audit
            Of different people: intervals take the two to be independent.
        """
        if not isinstance(earlier, Audit):
            raise TypeError(f"earlier must be an Audit, got {type(earlier).__name__}.")
        mine, theirs = (_label_kind(one) for one in (self, earlier))
        if mine != theirs:
            raise ValueError(
                f"earlier must be an audit of the same labels ({mine}), got one of {theirs}."
            )
        confidence = self.settings.confidence
        return AuditChange(
            change_of_gaps(self._tested, earlier._tested, confidence),
            change_of_rates(self.groups, earlier.groups, confidence),
        )

    def ends(self, criterion: str, by: str | Sequence[str]) -> pd.DataFrame:
        """The two groups whose rates make a gap, the lower rate first.

        Parameters
        ----------
        criterion : str
        by : str or sequence of str
            A grouping as in ``gaps``, or its attributes.

        Returns
        -------
        pandas.DataFrame
            ``group``, ``of`` and ``rate``; of several rates or classes those of the widest gap.
            No rows where the gap is not estimable.
        """
        attributes = self._attributes(by)
        for one in self._tested:
            if (one.criterion, one.attributes) == (criterion, attributes):
                return ends_of(one)
        known = list(dict.fromkeys(one.criterion for one in self._tested))
        raise ValueError(
            f"criterion must be one of {known}, got {criterion!r}.{meant(criterion, known)}"
        )

    def exceeds(self, asked: Iterable[tuple[int, float]]) -> list[bool]:
        """Whether gaps are surely above bounds, corrected for all that are asked about (Holm).

        The intervals of ``gaps`` hold row by row: of many rows some look like a violation by
        chance. Here the chance that any gap that is within its bound is called above it is at
        most one minus the confidence, for all of them together.

        Parameters
        ----------
        asked : pairs of a row of ``gaps``, by its place, and a bound

        Returns
        -------
        list of bool
            One for each pair; False where the gap is not estimable.

        Examples
        --------
        >>> from apfex import audit
        >>> sex, decided = ["F"] * 200 + ["M"] * 200, [0, 0, 0, 1] * 50 + [0, 1] * 100
        >>> result = audit(None, decided, sensitive_features={"sex": sex}, criteria="dp")
        >>> result.exceeds([(0, 0.05), (0, 0.2)])
        [True, False]
        """
        pairs = [(self._row(row), _bound(bound)) for row, bound in as_names("asked", asked)]
        return surely_above(pairs, self.settings.confidence)

    def rates_by_threshold(self) -> pd.DataFrame:
        """Rates of every group over all thresholds of the scores.

        Returns
        -------
        pandas.DataFrame
            ``threshold``, ``by``, ``group``, ``of``, ``rate``.
        """
        if self._counts.scores is None:
            gone = "" if self.thresholds is None else "; an audit from JSON no longer has them"
            raise ValueError(
                f"y_score must be given to audit for rates by threshold, got None{gone}."
            )
        grouped = [self._counts.by(attributes).scores for attributes in self._groupings]
        scores = [one for one in grouped if one is not None]
        return threshold_rates(scores, self.settings.rates)

    def to_frame(self, table: Literal["gaps", "groups"] = "gaps") -> pd.DataFrame:
        """A copy of the gaps, or of the groups."""
        if table not in ("gaps", "groups"):
            raise ValueError(f"table must be 'gaps' or 'groups', got {table!r}.")
        return (self.gaps if table == "gaps" else self.groups).copy()

    def to_json(self, *, indent: int | None = None) -> str:
        """Everything as JSON, NaN as null; :meth:`from_json` reads it.

        The keys, of ``schema_version`` 4: ``kind`` ("apfex.audit"), ``schema_version``,
        ``summary``, ``n_rows``, ``attributes``, ``settings``, ``notes``; ``gaps``, ``overall``,
        ``groups`` and ``worst`` as lists of rows; ``thresholds``, ``metrics``, ``metric_gaps``,
        ``calibration`` and ``gaps_within`` likewise, or null; ``counts``, from which all but these
        follows (:meth:`apfex.rates.ConfusionCounts.to_dict`). A change of their meaning raises
        the version.
        """
        return as_json(self, self._counts, indent)

    @staticmethod
    def from_json(text: str) -> Audit:
        """An audit from :meth:`to_json`, computed again from its counts.

        Notes, ``thresholds``, ``metrics``, ``metric_gaps``, ``calibration`` and ``gaps_within`` are
        those that were stored. Scores are not stored, so that :meth:`rates_by_threshold` is gone.
        """
        return read_json(text)

    def to_html(self, *, max_rows: int = 200) -> str:
        """A fragment of HTML without scripts; names from data are escaped."""
        return as_html(self, max_rows)

    def to_markdown(self, *, max_rows: int = 20) -> str:
        """Tables in Markdown; names from data are escaped."""
        return as_markdown(self, max_rows)

    def plot(self, ax: Axes | None = None, *, max_rows: int = 30) -> Axes:
        """Gaps with intervals, noise floor and tolerance, the worst on top; needs matplotlib.

        It is what :class:`GapDisplay` draws.
        """
        return GapDisplay.from_audit(self, max_rows=max_rows).plot(ax).ax_

    def to_plotly(self, *, max_rows: int = 30) -> graph_objects.Figure:
        """The same as a figure of plotly."""
        return GapDisplay.from_audit(self, max_rows=max_rows).to_plotly()

    def __repr__(self) -> str:
        """The worst gaps and groups, never a wall; the rest is in the tables."""
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self, 10)

    @property
    def _groupings(self) -> list[tuple[str, ...]]:
        return groupings_of(self.attributes)

    def _attributes(self, by: str | Sequence[str]) -> tuple[str, ...]:
        """Attributes of a grouping that is asked for."""
        for found in self._groupings:
            if by == grouping_name(found) if isinstance(by, str) else as_names("by", by) == found:
                return found
        names = [grouping_name(found) for found in self._groupings]
        raise ValueError(f"by must be one of {names}, got {by!r}.{meant(by, names)}")

    def _row(self, place: int) -> Tested:
        require_whole(row=place)
        if not 0 <= place < len(self._tested):
            raise IndexError(
                f"row must be a place in gaps, which has {len(self._tested)} rows, got {place}."
            )
        return self._tested[place]


def _bound(value: float) -> float:
    require_numbers(bound=value)
    return value


def _label_kind(audit: Audit) -> str:
    many = "several classes" if audit._counts.classes else "two"
    return f"{many}, favorable {audit.settings.favorable_label!r}"

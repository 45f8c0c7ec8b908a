"""What all methods share: two classes, groups in ``fit``, scikit-learn's contract."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

from sklearn.base import BaseEstimator, ClassifierMixin


class BinaryClassifier(ClassifierMixin, BaseEstimator, ABC):
    """A classifier of two classes whose ``fit`` is told the groups; see the methods."""

    __metadata_request__fit = {"sensitive_features": True}  # noqa: RUF012 - scikit-learn's protocol

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        validation: tuple | None = None,
    ) -> Self:
        """Learn from training rows, and choose on validation rows.

        Parameters
        ----------
        X : table or array of shape [n, d]
            Numbers are standardised, categories become one input per level.
        y : array of shape [n]
            Two classes; the second in sorted order is the positive one.
        sensitive_features : column, table or mapping
            As for :func:`apfex.groups.make_groups`; for :class:`SearchFair` a column of two values.
        sample_weight : array of shape [n], optional
            Only ratios matter; a row of weight zero is left out.
        validation : tuple (X, y, sensitive_features), optional
            Rows to choose by, (X, y) where there are no sensitive features. Without them
            ``validation_fraction`` of the rows are taken, evenly within label and group.
        """
        self._fit(X, y, sensitive_features, sample_weight, validation)
        return self

    @abstractmethod
    def _fit(
        self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any, validation: Any
    ) -> None:
        """Set what is learned."""

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that there are two classes."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

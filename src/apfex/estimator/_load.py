"""A classifier from the folder that it was saved in."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any

from torch import nn

from apfex.estimator._classifier import APFExClassifier
from apfex.estimator._user_model import is_estimator
from apfex.front import Encoder, EstimatorModel, ModelEncoder
from apfex.persistence import CorruptModelError, NotStored, load_model


def load(
    folder: str | os.PathLike[str],
    *,
    model: Any = None,
    init: Any = None,
    trusted: Sequence[str] = (),
) -> APFExClassifier:
    """The classifier that :meth:`APFExClassifier.save` has stored, with its whole front.

    Parameters
    ----------
    folder : str or path
    model : callable, nn.Module or classifier, optional
        Needed where points are modules of a class of your own, as only their numbers are stored:
        the factory ``(n_features, n_outputs) -> nn.Module`` that the classifier was fitted with,
        or a module of the same class. A classifier is only for another ``fit``.
    init : fitted model or function, optional
        The ``init`` that the front was made around. A function must be given, as its code is not
        stored; a classifier may be, and is then used instead of the stored one.
    trusted : sequence of str
        Types of a stored classifier that may be built although skops does not know them to be
        safe; an error names them. Only trust a folder whose maker you know.

    Returns
    -------
    APFExClassifier
        Fitted: every point predicts exactly as the stored one. An argument that could not be
        stored (a factory, ``init``, a RandomState) must be given again before another ``fit``;
        there is a warning where it was not.

    Notes
    -----
    Nothing in the folder is executed. A classifier of scikit-learn, stored by skops, is built of
    types that skops knows to be safe, and of those in ``trusted``. A folder of a newer format, a
    missing or a damaged file is refused with a sentence that names it.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from apfex import make_biased
    >>> data = make_biased(n=400, random_state=0)
    >>> clf = APFExClassifier(epochs=2, max_gap=1.0, random_state=0)
    >>> clf = clf.fit(data.X, data.y, sensitive_features=data.sensitive)
    >>> with TemporaryDirectory() as place:
    ...     again = load(clf.save(f"{place}/model"))
    >>> bool((again.predict_proba(data.X) == clf.predict_proba(data.X)).all())
    True
    """
    factory = None if is_estimator(model) else model
    stored = load_model(folder, factory=factory, init=init, trusted=trusted)
    try:
        clf = APFExClassifier(**stored.arguments)
    except TypeError as error:
        raise CorruptModelError(
            f"{str(folder)!r} must hold the arguments of a classifier, got others ({error}); save "
            "it again."
        ) from error
    if model is not None and isinstance(clf.model, NotStored) and not isinstance(model, nn.Module):
        clf.model = model
    if isinstance(clf.init, NotStored):
        found = init if init is not None else _stored_init(stored.fitted.encoder)
        clf.init = clf.init if found is None else found
    elif init is not None:
        raise ValueError(
            f"init must be None for a front that was made without, got {type(init).__name__}."
        )
    _tell_what_is_missing(clf)
    features = stored.fitted.features
    clf.n_features_in_ = features.n
    if features.names is not None:
        clf.feature_names_in_ = features.names
    clf.fitted_ = stored.fitted
    return clf.use(stored.point)


def _stored_init(encoder: Encoder) -> Any:
    """The fitted classifier that was stored, where there is one."""
    model = encoder.models[0] if isinstance(encoder, ModelEncoder) else None
    return model.estimator if isinstance(model, EstimatorModel) else None


def _tell_what_is_missing(clf: APFExClassifier) -> None:
    lacking = [v for v in clf.get_params(deep=False).values() if isinstance(v, NotStored)]
    if lacking:
        names = ", ".join(f"{one.argument} ({one.what})" for one in lacking)
        again = ", ".join(f"{one.argument}=..." for one in lacking)
        warnings.warn(
            f"Not stored with the classifier: {names}. It predicts, selects and audits as it did; "
            f"to fit it again, set_params({again}) first.",
            stacklevel=3,
        )

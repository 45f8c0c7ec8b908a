"""A classifier from the folder that it was saved in."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor, nn

from apfex.estimator._arguments import NotStored, unpack_arguments
from apfex.estimator._classifier import APFExClassifier
from apfex.estimator._course import timeline_from_arrays
from apfex.estimator._front import Front, Point
from apfex.estimator._kinds import Inputs
from apfex.estimator._measure import Encoder
from apfex.estimator._modules import build_modules
from apfex.estimator._own_modules import OwnModules
from apfex.estimator._own_trees import OwnInputs
from apfex.estimator._prepare import AsTheyAre
from apfex.estimator._save import FORMAT, KIND, make_groups_of
from apfex.estimator._whole import (
    NotWhole,
    check_classes,
    check_columns,
    check_modules,
    check_places,
)
from apfex.groups import Groups
from apfex.metrics import GapInterval
from apfex.rates import ConfusionCounts
from apfex.storage import Bundle, read_bundle, unpack
from apfex.tables import TableEncoder

if TYPE_CHECKING:
    import pandas as pd


def load(folder: str | os.PathLike[str], *, model: Any = None) -> APFExClassifier:
    """The classifier that :meth:`APFExClassifier.save` has stored, with its whole front.

    Parameters
    ----------
    folder : str or path
    model : callable or nn.Module, optional
        Needed where points are modules of a class of your own, as only their numbers are stored:
        the factory ``(n_features, n_outputs) -> nn.Module`` that the classifier was fitted with,
        or a module of the same class.

    Returns
    -------
    APFExClassifier
        Fitted: every point predicts exactly as the stored one. An argument that could not be
        stored (a factory, ``init``, a RandomState) must be given again before another ``fit``;
        there is a warning where it was not.

    Notes
    -----
    Nothing in the folder is executed. A folder of a newer format, a missing or a damaged file is
    refused with a sentence that names it.

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
    own = OwnModules(model)
    bundle = read_bundle(folder, kind=KIND, format=FORMAT)
    try:
        clf = _classifier(bundle, own)
    except (NotWhole, KeyError, IndexError, AttributeError, TypeError) as error:
        why = str(error) if isinstance(error, NotWhole) else repr(error)
        raise ValueError(
            f"{str(folder)!r} must hold a whole classifier, got one that cannot be put together "
            f"(content.json: {why}); save it again."
        ) from error
    if model is not None and isinstance(clf.model, NotStored) and not isinstance(model, nn.Module):
        clf.model = model
    _tell_what_is_missing(clf)
    return clf


def _classifier(bundle: Bundle, own: OwnModules) -> APFExClassifier:
    content = bundle.content
    check_places(content)
    clf = APFExClassifier(**_unpack(content["arguments"], unpack_arguments))
    clf.classes_ = _unpack(content["classes"])
    check_classes(clf.classes_)
    clf.n_features_in_ = int(content["features"]["n"])
    names = _unpack(content["features"]["names"])
    if names is not None:
        clf.feature_names_in_ = names
    clf._encoder = _encoder(content["encoder"])
    clf._groups = None if content["groups"] is None else _groups(content["groups"])
    check_columns(clf)
    modules = build_modules(content["modules"], bundle.arrays, bundle.files, own)
    counted = _unpack(content["counted"])
    points = [_point(stored, counted, modules[stored["module"]]) for stored in content["points"]]
    clf.front_ = Front(points, content["by"], _unpack(content["favorable_label"]))
    clf.timeline_ = _timeline(content["timeline"], bundle.arrays)
    if not any(one["is"] == "own" for one in content["modules"]):  # those may refuse made-up rows
        check_modules(clf)
    return clf.use(content["point"])


def _encoder(stored: Mapping[str, Any]) -> Encoder:
    if stored["is"] == "tables":
        encoders = stored["encoders"].items()
        return Inputs({family: _table_encoder(text, family) for family, text in encoders})
    if stored["is"] == "columns of init":
        return OwnInputs(list(stored["names"]), _unpack(stored["levels"]))
    if stored["is"] != "numbers":
        raise NotWhole(f"no encoder is {stored['is']!r}")
    return AsTheyAre()


def _table_encoder(text: str, family: str) -> TableEncoder:
    try:
        return TableEncoder.from_json(text)
    except ValueError as error:
        raise NotWhole(f"the encoder of {family} cannot be read: {error}") from error


def _timeline(stored: Any, arrays: Mapping[str, Tensor]) -> pd.DataFrame | None:
    try:
        return None if stored is None else timeline_from_arrays(stored, arrays)
    except ValueError as error:
        raise NotWhole(f"its timeline cannot be read: {error}") from error


def _unpack(stored: Any, by: Callable[[Any], Any] = unpack) -> Any:
    try:
        return by(stored)
    except ValueError as error:
        raise NotWhole(str(error)) from error


def _groups(stored: Mapping[str, Any]) -> Groups:
    levels = tuple(_unpack(level) for level in stored["levels"])
    cells = np.array(stored["cells"], dtype=np.int64)
    return make_groups_of(tuple(stored["attributes"]), levels, cells)


def _point(stored: Mapping[str, Any], counted: Mapping[str, Any], module: Any) -> Point:
    figures = {name: _unpack(value) for name, value in stored["figures"].items()}
    gaps = {name: GapInterval(**_unpack(gap)) for name, gap in stored["gaps"].items()}
    counts = _unpack(stored["counts"], lambda packed: _counts({**counted, **unpack(packed)}))
    return Point(**figures, gaps=gaps, module=module, counts=counts)


def _counts(stored: Mapping[str, Any]) -> ConfusionCounts:
    return ConfusionCounts.from_dict(stored)


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

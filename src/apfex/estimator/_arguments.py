"""Arguments of a classifier on disk, and what stands in for those that cannot be stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, final

from apfex.storage import pack, unpack

if TYPE_CHECKING:
    from apfex.estimator._classifier import APFExClassifier

_NEEDED = ("criteria", "favorable_label", "include_sensitive", "max_gap", "sensitive")
"""Arguments that a fitted classifier looks at."""


@final
class NotStored:
    """Stands for an argument that was not stored with a classifier, as a factory or a module.

    It is callable, as a factory is, but only to say that it is none.
    """

    def __init__(self, argument: str, what: str) -> None:
        self.argument, self.what = argument, what

    def __repr__(self) -> str:
        """Show what it was."""
        return f"<{self.argument} of the saved classifier, not stored: {self.what}>"

    def __call__(self, *_: Any) -> NoReturn:
        """Refuse."""
        raise ValueError(
            f"{self.argument} must be given again, as it was not stored with the classifier (it "
            f"was {self.what}); use set_params({self.argument}=...) before fit."
        )


def check_given(clf: APFExClassifier) -> None:
    """Refuse to fit with an argument that was not stored."""
    for value in clf.get_params(deep=False).values():
        if isinstance(value, NotStored):
            value()


def pack_arguments(clf: APFExClassifier) -> dict[str, Any]:
    """Arguments by name, and what those were that cannot be stored."""
    stored, others = {}, {}
    for name, value in clf.get_params(deep=False).items():
        if isinstance(value, NotStored):
            others[name] = value.what
            continue
        try:
            stored[name] = pack(value, name)
        except TypeError:
            if name in _NEEDED:
                raise
            others[name] = _what(value)
    return {"stored": stored, "not_stored": others}


def unpack_arguments(content: dict[str, Any]) -> dict[str, Any]:
    """Arguments for the constructor."""
    stored = {name: unpack(value) for name, value in content["stored"].items()}
    others = {name: NotStored(name, str(what)) for name, what in content["not_stored"].items()}
    return stored | others


def _what(value: Any) -> str:
    """Its name alone: what it prints may be long, or tell of data."""
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}.{named.__qualname__}"

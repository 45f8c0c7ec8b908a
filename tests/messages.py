"""What every error must be: ours, a sentence, about the argument, with what was found."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apfex

KINDS = (ValueError, TypeError, LookupError, OSError)
"""Those of ours, and ``NotFittedError``, are of these; IndexError is of a place."""
SOURCE = str(Path(apfex.__file__).parent)
RAW = re.compile(
    r"not supported between|unsupported operand|object is not|has no attribute|unhashable|"
    r"could not convert|got an unexpected|Traceback"
)
"""Words of Python and numpy, of which none says which argument it is about."""


def raised_by(call: Callable[[], Any]) -> BaseException:
    """The error of a call that must fail."""
    try:
        found = call()
    except Exception as error:
        return error
    raise AssertionError(f"nothing was raised, but came back: {found!r:.200}")


def problems_of(error: BaseException, argument: str, shown: str) -> list[str]:
    """What is wrong with the message of an error; nothing, if it is as it must be."""
    text, frames, trace = str(error), [], error.__traceback__
    while trace is not None:
        frames.append(trace.tb_frame.f_code.co_filename)
        trace = trace.tb_next
    checks = {
        f"{type(error).__name__} is none of {[kind.__name__ for kind in KINDS]}": isinstance(
            error, KINDS
        )
        and not isinstance(error, KeyError),
        f"it was raised by {frames[-1]}": frames[-1].startswith(SOURCE),
        f"it does not name {argument!r}": re.search(rf"\b{re.escape(argument)}", text) is not None,
        f"it does not show {shown!r}": shown in text,
        "it is no sentence": text.endswith((".", "?")) and text[:1] not in "([",
        "it has the words of another library": RAW.search(text) is None,
        "it is longer than a reader": len(text) <= 600,
    }
    return [problem for problem, fine in checks.items() if not fine]


def check(call: Callable[[], Any], argument: str, shown: str) -> None:
    """Hold the error of a call to the rule."""
    error = raised_by(call)
    problems = problems_of(error, argument, shown)
    assert not problems, f"{problems}\n{type(error).__name__}: {error}"


def state_of(thing: Any) -> Any:
    """What a failed call must leave as it was."""
    params = thing.get_params(deep=False) if hasattr(thing, "get_params") else {}
    own = {name: value for name, value in vars(thing).items() if name not in params}
    return {name: id(value) for name, value in own.items()}, repr(params)

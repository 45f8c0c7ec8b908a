"""The state of something that learns comes back bit by bit, or not at all."""

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from apfex.persistence._states import read_state, write_state

PLACE = Path("training.state")
DTYPES = (torch.float32, torch.float64, torch.int64, torch.bool, torch.uint8)
NUMBERS = st.integers(-(2**60), 2**60) | st.floats() | st.booleans() | st.none() | st.text()
TENSORS = st.tuples(st.lists(st.integers(0, 3), max_size=3), st.sampled_from(DTYPES)).map(
    lambda made: torch.randn(made[0]).to(made[1])
)
STATES = st.recursive(
    NUMBERS | TENSORS,
    lambda parts: (
        st.lists(parts, max_size=4)
        | st.tuples(parts, parts)
        | st.dictionaries(st.text() | st.booleans() | st.integers(), parts, max_size=4)
    ),
    max_leaves=12,
)


def same(one, other) -> bool:
    if isinstance(one, torch.Tensor):
        return (
            one.dtype == other.dtype
            and one.shape == other.shape
            and torch.equal(one.contiguous().nan_to_num(), other.nan_to_num())
        )
    if isinstance(one, list | tuple):
        pairs = zip(one, other, strict=True)
        return type(one) is type(other) and all(same(*pair) for pair in pairs)
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    return type(one) is type(other) and repr(one) == repr(other)


@settings(max_examples=100)
@given(STATES)
def test_a_state_comes_back_as_it_was(state):
    assert same(state, read_state(write_state(state), PLACE))


@settings(max_examples=50)
@given(st.data())
def test_a_state_that_was_changed_or_cut_is_refused(data):
    stored = bytearray(write_state({"epochs": 3, "values": [torch.arange(5.0)]}))
    if data.draw(st.booleans()):
        stored = stored[: data.draw(st.integers(0, len(stored) - 1))]
    else:
        stored[data.draw(st.integers(0, len(stored) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ValueError, match=r"'training.state' is damaged"):
        read_state(bytes(stored), PLACE)

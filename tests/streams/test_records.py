"""Rows in a file come back once each, in order or in buffers that are even along the file."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apfex.streams import RecordFile


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("records")


@settings(max_examples=30, deadline=None)
@given(n=st.integers(1, 20_000), size=st.integers(1, 9_000), epoch=st.integers(0, 3))
def test_every_row_comes_once_in_an_epoch(home, n, size, epoch):
    file = RecordFile(home / f"{n}-{size}-{epoch}", np.dtype("i4"))
    for part in np.array_split(np.arange(n, dtype="i4"), 3):
        file.append(part)
    assert np.concatenate(list(file.chunks(size))).tolist() == list(range(n))
    buffers = list(file.mixed(size, 0, epoch))
    assert sorted(np.concatenate(buffers).tolist()) == list(range(n))
    assert max(map(len, buffers)) <= max(size, 256)
    file.path.unlink()


def test_buffers_are_even_along_a_sorted_file(home):
    """Labels of a file that is sorted by them: each buffer has its share of each, up to pieces."""
    file = RecordFile(home / "sorted", np.dtype("i4"))
    file.append(np.repeat(np.arange(4, dtype="i4"), 65_536))
    for buffer in file.mixed(16_384, 0, 0):
        shares = np.bincount(buffer, minlength=4) / len(buffer)
        assert abs(shares - 0.25).max() <= 256 / 16_384


def test_the_order_is_a_function_of_seed_and_epoch(home):
    file = RecordFile(home / "order", np.dtype("i4"))
    file.append(np.arange(10_000, dtype="i4"))
    orders = [
        np.concatenate(list(file.mixed(2_048, seed, epoch))).tolist()
        for seed, epoch in ((0, 0), (0, 0), (0, 1), (1, 0))
    ]
    assert orders[0] == orders[1]
    assert orders[0] != orders[2] != orders[3] != orders[0]

"""Sums of rows by code: products, as on a CUDA device, give what others add up."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from apfex.rates._add_up import _by_products, _InFixedOrder, add_up


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30), st.integers(1, 3), st.booleans())
def test_products_and_index_add_give_the_same_sums(rows, members, by_class):
    codes = torch.tensor(rows)
    codes = torch.stack([codes, codes.flip(0)]) if by_class else codes
    values = torch.rand(members, *codes.shape)
    torch.testing.assert_close(_by_products(values, codes, 4), add_up(values, codes, 4))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_products_do_not_end_the_count_in_half_precision(dtype, monkeypatch):
    values, codes = torch.ones(2, 8_192, dtype=dtype), torch.arange(8_192) % 2
    monkeypatch.setattr("apfex.rates._add_up._BLOCK", 2_000)  # several blocks
    with torch.autocast("cpu", torch.bfloat16):
        assert _by_products(values, codes, 2).tolist() == [[4_096.0] * 2] * 2
        odd = _by_products(torch.ones(8_192), (torch.arange(8_192) < 4_097).long(), 2)
    assert odd.tolist() == [4_095.0, 4_097.0]  # neither is a number in bfloat16


@pytest.mark.parametrize("by_class", [False, True])
def test_gradients_of_products_are_those_of_index_add(by_class):
    codes = torch.tensor([[0, 2, 1, 2], [1, 1, 0, 2]]) if by_class else torch.tensor([0, 2, 1, 2])
    weight = torch.rand(3, *codes.shape[:-1], 3, dtype=torch.float64)
    values = torch.rand(3, *codes.shape, dtype=torch.float64, requires_grad=True)
    expected = torch.autograd.grad((add_up(values, codes, 3) * weight).sum(), values)[0]
    sums: Any = _InFixedOrder.apply(values, codes, 3)
    torch.testing.assert_close(torch.autograd.grad((sums * weight).sum(), values)[0], expected)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("size", [3, 700], ids=["few groups", "blocks of rows"])
@pytest.mark.parametrize("by_class", [False, True])
def test_a_device_gives_the_same_bits_twice(size, by_class):
    values = torch.rand(8, 2, 40_000) if by_class else torch.rand(8, 40_000)
    codes = torch.randint(size, (2, 40_000) if by_class else (40_000,))
    there = [add_up(values.cuda(), codes.cuda(), size) for _ in range(20)]
    assert all(torch.equal(sums, there[0]) for sums in there)
    exact = add_up(values.double(), codes, size)
    torch.testing.assert_close(there[0].cpu().double(), exact, rtol=1e-5, atol=0)

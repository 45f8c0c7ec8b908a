"""Processes are started once, and do all that the tests look at."""

import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from tests.distributed.ranks import Ended, in_group


@dataclass(frozen=True)
class Ranks:
    """How processes have ended, what each has come to, and what it was told."""

    ended: list[Ended]
    found: list[dict]
    told: list[dict]


def run(function: str, folder: Path, number: int, to_fail: Collection[int] = ()) -> Ranks:
    if not (dist.is_available() and dist.is_gloo_available()):
        pytest.skip("needs torch.distributed with gloo")
    ended = in_group(f"tests.distributed.workers:{function}", folder, number)
    for rank, one in enumerate(ended):
        fine = one.code != 0 if rank in to_fail else one.is_done
        assert fine, f"worker {rank} ended with {one.code}: {one.out[-3000:]}"
    found = [torch.load(folder / f"{rank}.pt") for rank in range(number)]
    told = [json.loads((folder / f"{rank}.json").read_text()) for rank in range(number)]
    return Ranks(ended, found, told)


@pytest.fixture(scope="session")
def ranks(tmp_path_factory) -> Ranks:
    """Three of them, the last of which dies in the end."""
    return run("everything", tmp_path_factory.mktemp("ranks"), 3, to_fail=[2])


@pytest.fixture(scope="session")
def found(ranks):
    return ranks.found


@pytest.fixture(scope="session")
def told(ranks):
    return ranks.told


@pytest.fixture(scope="session")
def heavy(tmp_path_factory) -> Ranks:
    """Two that compile and shard models."""
    return run("heavy", tmp_path_factory.mktemp("heavy"), 2)

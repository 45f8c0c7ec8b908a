"""What each process of a group does in the tests; results go to files."""

import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from tests.distributed.failures import FAILURES, OF_SHARDS, Told, dies, failures
from tests.distributed.loops import (
    COMPILED,
    KINDS,
    LOOPS,
    Part,
    Result,
    overflow,
    resumed,
    scales,
    single,
    train,
)
from tests.distributed.populations import FRONTS, POPULATIONS, front, writes_folder
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from apfex.distributed import share_batches
from apfex.strategies import AdaptiveWeighting, ConeProjection, SetSampling


def evenly(rank: int, number: int) -> Part:
    return lambda rows: rows.tensor_split(number)[rank]


def unevenly(rank: int, number: int) -> Part:
    """A few rows, the rest, and nothing."""

    def part(rows: Tensor) -> Tensor:
        parts = [rows[:5], rows[5:], *[rows[:0]] * (number - 2)]
        return parts[rank]

    return part


def as_it_is(model: Any) -> Any:
    return model


WAYS = {1: ("wrapped",), 2: ("wrapped",), 3: ("uneven",)}
"""How batches are shared, and whether models are wrapped, by the number of workers."""


def everything(rank: int, number: int) -> None:
    """All that the tests look at, so that few processes have to be started."""
    found = equal_steps(rank, number) | other_loops(rank, number)
    with share_batches(dist.group.WORLD):
        found |= {name: train_all() for name, train_all in POPULATIONS.items()}
    save(rank, found)
    told = failures(rank, number, FAILURES)
    tell(rank, told)
    tell(rank, told | dies(rank, number))
    os._exit(0)  # the group cannot be taken apart any more


def heavy(rank: int, number: int) -> None:
    """What takes a compiler, or FSDP."""
    even = evenly(rank, number)
    found: dict[Any, Result] = {
        (name, way): loop(even, wrap)
        for name, loop in COMPILED.items()
        for way, wrap in (("even", as_it_is), ("wrapped", DistributedDataParallel))
    }
    found["aw"] = train(even, shard, AdaptiveWeighting(), outputs=False)
    found["pss"] = train(even, shard, SetSampling(), outputs=False)
    found["pcp"] = train(even, shard, ConeProjection(), outputs=True, space="prediction")
    found["aw in part"] = train(even, shard_part, AdaptiveWeighting(), outputs=False, clips=False)
    found["pcp in part"] = train(
        even, shard_part, ConeProjection(), outputs=True, space="prediction", clips=False
    )
    with share_batches(dist.group.WORLD):
        found |= {name: front(**settings) for name, settings in FRONTS.items()}
        found["folder"] = {"written": torch.tensor(writes_folder(Path.cwd() / "run"))}
    save(rank, found)
    tell(rank, failures(rank, number, OF_SHARDS))


def save(rank: int, found: dict[Any, Result]) -> None:
    torch.save(found, Path.cwd() / f"{rank}.pt")


def tell(rank: int, told: Told) -> None:
    (Path.cwd() / f"{rank}.json").write_text(json.dumps(told))


def equal_steps(rank: int, number: int) -> dict[Any, Result]:
    """Every loop with 1, 2 and 3 workers, even parts and others, wrapped and not."""
    found: dict[Any, Result] = {}
    for size in range(1, number + 1):
        group = dist.new_group(list(range(size)))
        if rank >= size:
            continue
        even = evenly(rank, size)
        ways = {
            "even": (even, as_it_is),
            "wrapped": (even, partial(DistributedDataParallel, process_group=group)),
            "uneven": (unevenly(rank, size), as_it_is),
        }
        with share_batches(group):
            for way in WAYS[size]:
                for name, loop in LOOPS.items():
                    found[name, size, way] = loop(*ways[way])
    return found


def other_loops(rank: int, number: int) -> dict[Any, Result]:
    """With the default group, and with two after one another."""
    found: dict[Any, Result] = {}
    even = evenly(rank, number)
    cone = ConeProjection()
    found["default"] = train(even, DistributedDataParallel, cone, outputs=False)
    for name, more in {
        "unused": {"find_unused_parameters": True},
        "static": {"static_graph": True},
        "views": {"gradient_as_bucket_view": True},
    }.items():

        def wrap(model: Any, more: dict[str, Any] = more) -> Any:
            return DistributedDataParallel(model, **more)

        found[name] = train(even, wrap, cone, outputs=True)
    found["overflow on one"] = overflow(even, as_it_is, 1e30 if rank == 1 else 1.0)
    found["no overflow"] = overflow(even, as_it_is, 1.0)
    found["single"] = single(unevenly(rank, number), DistributedDataParallel)
    found["scales"] = {kind: scales(unevenly(rank, number), kind) for kind in KINDS}
    found["resumed"] = resumed([unevenly(rank, number), alone, evenly(rank, number)], as_it_is)
    return found


def alone(rows: Tensor) -> Tensor:
    """Every worker has all rows: the mean over workers is that of one."""
    return rows


def shard(model: Any) -> Any:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    fully_shard(model[0], mesh=mesh)
    return fully_shard(model, mesh=mesh)


def shard_part(model: Any) -> Any:
    """The last layer stays whole on every worker; torch clips no such mixture."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    fully_shard(model[0], mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
    return model

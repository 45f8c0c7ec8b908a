"""``--slice 3`` runs every third of the chosen tests: a part of the slow tier for CI."""

import pytest
from hypothesis import settings

# How long an example takes depends on the machine: benchmarks are for time.
settings.register_profile("default", deadline=None)
settings.load_profile("default")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--slice", type=int, default=1, help="run one test in so many only")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests between."""
    step = int(config.getoption("--slice") or 1)
    left_out = [item for place, item in enumerate(items) if place % step]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = items[::step]

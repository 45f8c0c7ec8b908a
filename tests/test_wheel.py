"""What is shipped is the product, all of it and nothing else."""

import pytest
from tests.wheels import (
    ROOT,
    build_wheel,
    imported_distributions,
    read_part,
    requirements_of,
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build_wheel(ROOT, tmp_path_factory.mktemp("wheel"))


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    shipped = {name for name in wheel.namelist() if ".dist-info/" not in name}
    source = ROOT / "src"
    files = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert shipped == files
    assert not [name for name in shipped if "baselines" in name or "experiments" in name]


def test_every_requirement_is_imported(wheel):
    """What only the study needs is not installed with the product."""
    needed = set(requirements_of(wheel, extras=False))
    assert needed <= imported_distributions(ROOT / "src")


def test_the_command_is_declared(wheel):
    assert "apfex = apfex.cli:main" in read_part(wheel, "entry_points.txt")

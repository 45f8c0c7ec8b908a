"""The study is a distribution of its own that belongs to one version of the product."""

import pytest
from tests.wheels import (
    ROOT,
    build_wheel,
    imported_distributions,
    metadata_of,
    read_part,
    requirements_of,
)

import apfex

PROJECT = ROOT / "reproduction"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build_wheel(PROJECT, tmp_path_factory.mktemp("wheel"))


def test_the_wheel_holds_the_study_and_nothing_else(wheel):
    shipped = {name for name in wheel.namelist() if ".dist-info/" not in name}
    source = PROJECT / "src"
    files = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert shipped == files
    assert {name.split("/")[0] for name in shipped} == {"apfex_reproduction"}


def test_its_version_is_that_of_the_product(wheel):
    assert metadata_of(wheel)["Version"] == apfex.__version__
    assert str(requirements_of(wheel, extras=False)["apfex"].specifier) == f"=={apfex.__version__}"


def test_it_requires_what_it_imports(wheel):
    ours = {"apfex", "apfex-reproduction"}
    needed = set(requirements_of(wheel, extras=False))
    assert needed - ours == imported_distributions(PROJECT / "src") - ours


def test_it_adds_the_command(wheel):
    declared = read_part(wheel, "entry_points.txt")
    assert "[apfex.commands]\nreproduce = apfex_reproduction.cli:app" in declared

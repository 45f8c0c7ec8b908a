"""The site, built once as ``make docs`` builds it."""

import logging
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a strict build, which fails where anything is to be warned of.

    Processes of one test run share it.
    """
    from filelock import FileLock

    alone = "PYTEST_XDIST_WORKER" not in os.environ
    base = tmp_path_factory.getbasetemp()
    folder = (base if alone else base.parent) / "site"
    with FileLock(f"{folder}.lock"):
        if not (folder / "whole").exists():
            build_site(folder)
            (folder / "whole").touch()
    return folder


def build_site(folder: Path) -> None:
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True)
    logging.getLogger("mkdocs").setLevel(logging.WARNING)
    config.plugins.on_startup(command="build", dirty=False)
    build(config)

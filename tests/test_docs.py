"""Links between the pages lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "reproduction" / "README.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_relative_links_resolve(page):
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text())
    local = [target for target in targets if "://" not in target]
    assert all(is_there(page.parent / target) for target in local), local


def is_there(target: Path) -> bool:
    """Whether a file is in the repository, or a picture that a notebook holds."""
    notebook = re.sub(r"-\d+\.png$", ".ipynb", str(target))
    return target.exists() or (notebook != str(target) and Path(notebook).exists())

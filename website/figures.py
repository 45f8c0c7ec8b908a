"""Pictures that no code on a page draws: ``python -m website.figures NAME ...``, or all."""

import json
import shutil
import sys
from collections.abc import Callable
from contextlib import chdir
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from website.record_figures import RECORD_FIGURES, saving
from website.run_pages import DOCS, read_blocks, run_blocks

FOLDER = DOCS / "figures"


@cache
def report() -> str:
    """The report that the blocks of ``docs/report.md`` write."""
    blocks = read_blocks((DOCS / "report.md").read_text(encoding="utf-8"))
    with TemporaryDirectory() as folder, chdir(folder):
        run_blocks(blocks, lambda *_: None)
        return Path("report.html").read_text(encoding="utf-8")


def part_of_report(part: str, width: int = 540) -> Callable[[Path], None]:
    """What takes a picture of a part of the report, in Chromium."""

    def take(place: Path) -> None:
        from playwright.sync_api import sync_playwright

        path = shutil.which("chromium") or shutil.which("google-chrome")
        with sync_playwright() as started:
            browser = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
            view = browser.new_page(
                viewport={"width": width, "height": 900},
                device_scale_factor=1.5,
                color_scheme="light",
            )
            view.set_content(report())
            view.wait_for_selector(f"{part}:visible")
            view.locator(part).screenshot(path=place)
            browser.close()

    return take


def memory_of_fits(place: Path) -> None:
    """Growth of peak memory over the size of the table, of ``benchmarks/results/disk``."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    record = DOCS.parent / "benchmarks" / "results" / "disk" / "two-cores.json"
    fits = json.loads(record.read_text(encoding="utf-8"))["fits"]
    figure, axes = plt.subplots(figsize=(5.6, 3.2), layout="constrained")
    ways = {
        "memory": "in memory",
        "streamed": "from files, by default",
        "small rules": "from files, rule_rows=16_384",
    }
    for way, label in ways.items():
        of_way = [one for one in fits if one["way"] == way]
        rows = [one["rows"] / 1_000 for one in of_way]
        axes.plot(rows, [one["growth_bytes"] / 2**20 for one in of_way], "o-", label=label)
    axes.set(xlabel="thousand rows", ylabel="growth of peak memory, MB", xlim=0, ylim=0)
    axes.legend()
    figure.savefig(place, dpi=160)


FIGURES: dict[str, Callable[[Path], None]] = {
    "report-first-screen": part_of_report("#now"),
    "report-front": part_of_report("#front", 640),
    "report-changes": part_of_report("#changes"),
    **{name: saving(draw) for name, draw in RECORD_FIGURES.items()},
    "streams-memory": memory_of_fits,
}
"""For each name what writes ``docs/figures/NAME.png``."""


if __name__ == "__main__":
    for name in sys.argv[1:] or FIGURES:
        FIGURES[name](FOLDER / f"{name}.png")
        print(name)

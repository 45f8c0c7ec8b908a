"""What docs/streams.md says of memory is what the record of ``bench_disk.py`` holds."""

import json
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = " ".join((ROOT / "docs" / "streams.md").read_text(encoding="utf-8").split())
FITS = json.loads((ROOT / "benchmarks/results/disk/two-cores.json").read_text())["fits"]


def growth(way):
    """Growth of peak memory in MB by thousands of rows."""
    return {one["rows"]: one["growth_bytes"] / 2**20 for one in FITS if one["way"] == way}


def test_figures_of_memory_are_those_of_the_record():
    memory, streamed, small = (growth(way) for way in ("memory", "streamed", "small rules"))
    most = max(memory)
    assert f"At {most:,} rows a fit in memory takes {memory[most]:,.0f} MB" in PAGE
    assert f"by default {streamed[most]:,.0f} MB" in PAGE
    assert f"`rule_rows=16_384` {small[most]:,.0f} MB" in PAGE
    (size,) = {one["data_bytes"] / 2**20 for one in FITS if one["rows"] == most}
    assert f"a file of {size:.0f} MB" in PAGE


def test_memory_of_a_stream_is_bounded_where_rules_are():
    memory, small = growth("memory"), growth("small rules")
    assert small[max(small)] < 1.5 * small[min(small)]
    assert memory[max(memory)] > 5 * memory[min(memory)]


def test_errors_are_alike_both_ways():
    for one in FITS:
        (same,) = (o for o in FITS if o["rows"] == one["rows"] and o["way"] == "memory")
        assert abs(one["error"] - same["error"]) < 0.005

"""The snippets of docs/migration.md run, and both sides of a pair agree where the page says so."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from apfex.metrics import dp_gap

PAGE = (Path(__file__).parents[1] / "docs" / "migration.md").read_text()


def run_part(title):
    part = re.search(rf"^## {title}$(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    assert part
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", part[1], re.S):
        exec(compile(block, title, "exec"), names)
    return names


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pandas.errors.Pandas4Warning")  # by fairlearn
def test_fairlearn():
    names = run_part("fairlearn")
    assert names["ours"] == pytest.approx(names["theirs"], abs=1e-12)
    rates = names["frame"].by_group.to_dict()
    groups = names["result"].groups
    crossing = groups[(groups["by"] == "sex x origin") & (groups["of"] == "dp")]
    found = {(row["sex"], row["origin"]): row["rate"] for row in crossing.to_dict("records")}
    assert found == pytest.approx(rates)
    data, clf = names["data"], names["clf"]
    assert clf.predict(names["X"]).tolist() == names["fair"].tolist()
    for decided in (names["fair"], names["mitigated"], names["thresholded"], names["own"]):
        after = dp_gap(data.y, decided, sensitive_features=data.sensitive)
        assert after < names["ours"]  # each closes some of the gap


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # AIF360's own, of packages that are not there and of pandas
def test_aif360():
    pytest.importorskip("aif360", reason="AIF360 is not installed")
    names = run_part("AIF360")
    np.testing.assert_allclose(np.abs(names["theirs"]), names["ours"], atol=1e-12)
    sensitive = {"sensitive_features": names["data"].sensitive}
    before = dp_gap(names["y"], names["decided"], **sensitive)
    assert dp_gap(names["y"], names["fair"], **sensitive) < before


def test_torchjd():
    pytest.importorskip("torchjd", reason="TorchJD comes with the extra bench")
    names = run_part("TorchJD")
    torch.testing.assert_close(names["ours"], names["theirs"], atol=1e-4, rtol=1e-4)


def test_snippets_stand_side_by_side_and_fit():
    """On a wide screen a column has room for some sixty letters."""
    pairs = re.findall(r'^<div class="beside" markdown>$(.*?)^</div>\n</div>$', PAGE, re.M | re.S)
    blocks = [re.findall(r"```python\n(.*?)```", pair, re.S) for pair in pairs]
    assert [len(pair) for pair in blocks] == [2] * 6
    shown = [block for pair in blocks for block in pair]
    apart = [one for one in re.findall(r"```python\n(.*?)```", PAGE, re.S) if one not in shown]
    assert len(apart) == 2  # what both sides begin with
    assert all("fairlearn" not in one and "aif360" not in one for one in apart)
    lines = [line for block in shown for line in block.splitlines()]
    assert max(map(len, lines)) <= 58
    assert all("APFEx**" in pair for pair in pairs)


def test_every_name_of_ours_in_the_tables_is_there():
    import apfex
    from apfex import metrics, strategies

    here = re.findall(r"^\|[^|]*\|([^|]*)\|$", PAGE, re.M)
    named = {word for cell in here for word in re.findall(r"`(\w+_gap|group_rates)`", cell)}
    assert named <= set(metrics.__all__)
    classes = {word for cell in here for word in re.findall(r"\b([A-Z]\w*Weights|UPGrad)\b", cell)}
    assert classes <= set(strategies.__all__)
    assert {"APFEx", "APFExClassifier", "audit"} <= set(apfex.__all__)

"""Gates on gaps."""

import pytest
from tests.auditing.rows import audit, counts, rows

from apfex.testing import assert_gap


def of(sizes, successes, **options):
    decided, table = counts(sizes, successes)
    return audit(None, decided, sensitive_features=table, criteria="dp", **options)


def fails(found, **options):
    try:
        assert_gap(found, **options)
    except AssertionError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("tolerance", [0.0, 0.05, 0.2])
@pytest.mark.parametrize("successes", [(30, 60), (40, 55), (50, 50)])
def test_the_default_fails_exactly_at_a_violation(successes, tolerance):
    found = of([100, 100], successes, tolerance=tolerance)
    assert bool(fails(found)) == (found.gaps["verdict"][0] == "violation")


@pytest.mark.parametrize("end", ["lower", "gap", "upper"])
def test_any_end_can_be_bounded(end):
    found = of([100, 100], [30, 60])
    value = found.gaps[end][0]
    assert not fails(found, max_gap=value + 1e-9, end=end)
    message = fails(found, max_gap=value - 1e-9, end=end)
    assert "dp by g: 0.300 (" in message
    assert "from 'g=a' 30.0% to 'g=b' 60.0%" in message
    assert f"the {'gap' if end == 'gap' else end + ' end'} must not exceed" in message


def test_what_cannot_be_estimated_does_not_pass_in_silence():
    found = of([100, 5], [30, 2])
    assert "dp by g: not estimable, fewer than two groups of 10 rows" in fails(found)
    assert not fails(found, allow_not_estimable=True)


def test_rows_can_be_chosen():
    y, decided, table, _ = rows(2000)
    decided = (decided & (table["sex"] == "M")).to_numpy().astype(int)
    found = audit(y, decided, sensitive_features=table)
    assert "4 of 6 gaps fail" in fails(found)
    assert not fails(found, by="race")
    assert "1 of 1 gaps fail" in fails(found, by="sex", criteria="demographic_parity")
    assert "2 of 4 gaps" in fails(found, by=["race", "sex"])


def test_the_worst_comes_first_and_the_rest_is_counted():
    y, decided, table, _ = rows(3000, attributes=3)
    decided = (decided & (table["sex"] == "M")).to_numpy().astype(int)
    found = audit(y, decided, sensitive_features=table)
    lines = fails(found, end="gap", max_gap=0.0).splitlines()
    assert lines[0].startswith("14 of 14")
    assert lines[6] == "  and 9 more"
    gaps = [float(line.split(": ")[1][:5]) for line in lines[1:6]]
    assert gaps == sorted(gaps, reverse=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"end": "middle"}, "end must be one of"),
        ({"max_gap": 5}, "max_gap must be at least 0 and below 1, got 5"),
        ({"criteria": "tpr"}, r"criteria must be among those audited, \['dp'\], got \['tpr'\]"),
        ({"by": "sex"}, r"by must be among those audited, \['g'\], got \['sex'\]"),
    ],
)
def test_bad_choices_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        assert_gap(of([50, 50], [10, 20]), **options)


def test_rows_are_audited_first():
    with pytest.raises(TypeError, match=r"audit must be an Audit, got list; call apfex.audit"):
        assert_gap([0, 1])  # pyright: ignore[reportArgumentType]

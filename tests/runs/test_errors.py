"""Messages: arguments are spelled as they are typed, and names from data are only text."""

import pandas as pd
import pytest
from tests.people import people

import apfex
from apfex.runs import RunError


@pytest.mark.parametrize("name", ["{--drop}", "{--predict}", "{drop}", "{0}", "{{drop}}"])
def test_a_name_from_data_is_never_taken_for_an_argument(name):
    table = people(60).rename(columns={"hired": "outcome"})
    with pytest.raises(RunError) as caught:
        apfex.explore(table, label=name, sensitive=["sex"])
    assert f"'{name}'" in str(caught.value)
    assert caught.value.argument == "label"
    with pytest.raises(RunError) as caught:
        apfex.explore(pd.DataFrame({name: [1, 2], "y": [0, 1]}), label="y", sensitive=[f"{name}x"])
    assert (caught.value.argument, caught.value.suggestion) == ("sensitive", name)

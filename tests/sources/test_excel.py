"""Excel files are read as CSV is, one sheet that is named where there are several."""

import datetime
import sys
from typing import Any

import pandas as pd
import pytest
from tests.people import COLUMNS, TRAINING, people

from apfex import explore
from apfex.runs import RunError
from apfex.sources._tables import open_table

openpyxl = pytest.importorskip("openpyxl")


def write(path, **sheets):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_columns_have_the_type_that_all_their_values_have(tmp_path):
    day = datetime.datetime(2024, 2, 29)
    rows = [
        ["n", "x", "word", "mixed", "yes", "day", None, "empty", None],
        [1, 1.5, "a", 1, True, day, "u", None, None],
        [None, 2, "NA", "b", False, None, "v", None, None],
        [None] * 9,
    ]
    table = open_table(write(tmp_path / "t.xlsx", data=rows))
    assert table.columns == ("n", "x", "word", "mixed", "yes", "day", "column 7", "empty")
    assert table.describe() == "t.xlsx (Excel, sheet data)"
    frame = table.read()
    assert len(frame) == 2
    assert frame["mixed"].tolist() == ["1", "b"]
    assert frame["yes"].dtype == bool
    assert frame["day"][0] == datetime.date(2024, 2, 29)
    assert frame["word"].isna().tolist() == [False, True]
    assert table.read_arrow()["n"].to_pylist() == [1, None]  # and not 1.0


BAD = {
    "empty": ([], "is empty: a row of column names"),
    "late": ([[None, None], ["a", "b"]], "begins with an empty row"),
    "names only": ([["a", "b"]], "has column names, but no rows"),
    "twice": ([["a", "a"], [1, 2]], "two columns named 'a'"),
    "formula": ([["a"], [1], ["#DIV/0!"]], "a has the error #DIV/0! of a formula in row 3"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_sheet_is_told_in_a_sentence(tmp_path, name):
    rows, words = BAD[name]
    path = write(tmp_path / "t.xlsx", data=rows)
    with pytest.raises(RunError, match=words):
        open_table(path).read()


def test_which_sheet_is_not_guessed(tmp_path):
    path = write(tmp_path / "t.xlsx", first=[["a"], [1]], second=[["b"], [2]])
    with pytest.raises(RunError, match=r"2 sheets \(first, second\)") as caught:
        open_table(path)
    assert caught.value.argument == "sheet"
    assert open_table(path, sheet="second").columns == ("b",)
    with pytest.raises(RunError, match="did you mean 'second'") as caught:
        open_table(path, sheet="secnd")
    assert caught.value.suggestion == "second"
    with pytest.raises(RunError, match="sheet is for Excel files"):
        open_table(pd.DataFrame({"a": [1]}), sheet="first")


def test_what_is_no_workbook_is_told(tmp_path):
    (tmp_path / "t.xlsx").write_bytes(b"PK\x03\x04")
    with pytest.raises(RunError, match="is no Excel file, or a damaged one"):
        open_table(tmp_path / "t.xlsx")


def test_a_run_of_an_excel_file_is_that_of_its_rows(tmp_path):
    frame = people().replace({"town": {"=HYPERLINK(1)": "Ashford"}})  # a formula without a value
    frame.to_excel(tmp_path / "people.xlsx", index=False, sheet_name="staff")
    arguments: dict[str, Any] = COLUMNS | TRAINING | {"max_gap": 1}
    run = explore(tmp_path / "people.xlsx", **arguments, sheet="staff")
    assert run.record["results"] == explore(frame, **arguments).record["results"]
    done = run.predict_file(tmp_path / "people.xlsx")
    assert done.out == tmp_path / "people-predictions.csv"
    assert done.out is not None
    found, wanted = pd.read_csv(done.out), run.predict(frame)
    assert found["prediction"].tolist() == wanted["prediction"].tolist()
    with pytest.raises(RunError, match="Excel files are read, but not written"):
        run.predict_file(frame, tmp_path / "out.xlsx")


def test_without_the_extra_its_name_is_told(tmp_path, monkeypatch):
    path = write(tmp_path / "t.xlsx", data=[["a"], [1]])
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(RunError, match=r"pip install .apfex\[excel\].\. Or save it as CSV"):
        open_table(path)

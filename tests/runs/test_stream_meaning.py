"""A CSV file means the same, read in chunks or into memory, and is refused in the same words."""

import gzip
import re

import pytest

from apfex import explore
from apfex.runs import RunError
from apfex.runs._columns import feature_types
from apfex.sources._tables import open_table
from apfex.streams import RowSample, open_files

MANY = "".join(f"{place},b\n" for place in range(60))
"""Rows of several blocks."""
READ = {
    "blanks before cells": "age, sex,w\n39, Male, 1.5\n40, Female,2\n 41, Male ,\t3\n",
    "blanks where nothing is": "x,y\n ,1\n2, NA\n3,\n",
    "commas in a comma-separated file": 'x,y\n"76,586",1\n"1,5",2\n',
    "decimal commas": "x;y;z\n1,5;a;7\n-2;b;8\n",
    "points beside decimal commas": "x;y\n1,5;a\n2,5;b\n1.5;c\n",
    "commas beside decimal points": "x;y\n1.5;a\n2.5;b\n1,5;c\n",
    "decimal commas that begin late": "x;y\n" + "1;a\n" * 300 + "1,5;b\n",
    "true and false in any case": "x,y\ntRue,1\nfalse,2\n",
    "true and false in usual cases": "x,y,z\nTRUE,1,true\n0,2,\nfalse,3,False\n",
    "blanks before true and false": "x,y\n true,1\nfalse,2\n",
    "whole numbers of which one is missing late": f"x,y\n{MANY},c\n",
    "true and false of which one is missing late": "x,y\n" + "true,b\n" * 60 + ",c\n",
    "text that begins late": f"x,y\n{MANY}many,c\n",
    "numbers in many forms": "a,b,c,d,e\n+5,0x10,1e5,inf,99999999999999999999\n1,2,3,4.5,6\n",
    "numbers in forms that are text": "a,b,c\n1_000,1\u00a0,--1\n2,3,4\n",
    "leading zeros": "zip,y\n00501,1\n10001,2\n",
    "dates and times": "a,b,c\n2024-01-31,12:30,2024-01-31 12:30:00\n2024-02-29,13:00,\n",
    "no values in a column": "x,y,z\n1,,NA\n2,,<NA>\n",
    "None is a name": "x,y\nNone,1\nnull,2\nn/a,3\n",
    "quoted cells": 'x,y\n"a ""b""\nc",1\n" 2",2\n"",3\nab"c,4\n',
    "a name of two lines": '"a\nb",y\n1,2\n3,4\n',
    "a column without a name": ",y\n0,1\n1,2\n",
    "empty lines": "x,y\n\n1,2\n\n3,4\n\n",
    "lines as Windows ends them": "x,y\r\n1,a\r\n2,b\r\n",
    "no end of the last line": "x|y\n1|a\n2|b",
    "tabs": "x\ty\n1,5\ta\n2,5\tb\n",
    "a mark of UTF-8": "\ufeffx,y\n1,ä\n".encode(),
    "UTF-16 with a mark": "x,y\n1,ä\n2,b\n".encode("utf-16"),
}
ROWS = "b,0,2\nc,1,3\n" * 99
REFUSED = {
    "a quote that is never closed": ('x,y,z\n"a,1,2\n' + ROWS, "a quote that is never closed"),
    "such a quote far below": (f'x,y,z\n"a",1,2\n{ROWS}"d,1,2\ne,0,3\n', "never closed"),
    "a cell too many": ("x,y,z\na,1,2\nb,0,2,3\n", "Expected 3 columns, got 4"),
    "a cell too few": ("x,y,z\na,1,2\nb,3\n", "Expected 3 columns, got 2"),
    "two columns of one name": ("x,y,x\na,1,b\nc,0,d\n", "two columns named 'x'"),
    "nothing": ("", "is empty"),
    "an empty line first": ("\nx,y,z\na,1,2\n", "begins with an empty line"),
    "names alone": ("x,y,z\n", "has column names, but no rows"),
    "no UTF-8": ("x,y,z\nä,1,2\nb,0,3\n".encode("latin-1"), "encoding='cp1252'"),
    "no UTF-8 far below": (f"x,y,z\n{ROWS}ä,1,2\n".encode("latin-1"), "encoding='cp1252'"),
    "UTF-16 without a mark": ("x,y,z\na,1,2\n".encode("utf-16-le"), "encoding='utf-16-le'"),
}


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr("apfex.streams._csv_files._BLOCK", 64)


def write(folder, content, name="t.csv"):
    path = folder / name
    content = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


def cells(frame):
    return frame.astype(object).where(frame.notna(), None).to_numpy().tolist()


def meaning(path, *, streamed, encoding=None):
    """Names of columns, what each holds, and all rows; a number is told from text by its repr."""
    if not streamed:
        frame = open_table(path, encoding).read()
        return list(frame.columns), feature_types(frame), repr(cells(frame))
    stream, sample, rows = open_files(path, encoding), RowSample(1_000), []
    for frame in stream.frames(stream.columns, 7):
        sample.add(frame)
        rows += cells(frame)
    return list(stream.columns), feature_types(sample.frame()), repr(rows)


@pytest.mark.parametrize("content", READ.values(), ids=READ)
def test_a_file_means_the_same_in_chunks(tmp_path, content):
    path = write(tmp_path, content)
    assert meaning(path, streamed=True) == meaning(path, streamed=False)


@pytest.mark.parametrize("name", ["t.csv.gz", "t.tsv.gz", "t.tsv", "t.txt"])
def test_so_does_one_of_any_ending(tmp_path, name):
    path = write(tmp_path, READ["decimal commas"], name)
    assert meaning(path, streamed=True) == meaning(path, streamed=False)


def test_so_does_one_whose_encoding_is_told(tmp_path):
    path = write(tmp_path, "x,y\nBär,1\n".encode("cp1252"))
    found = meaning(path, streamed=True, encoding="cp1252")
    assert found == meaning(path, streamed=False, encoding="cp1252")
    assert found[2] == "[['Bär', 1]]"


@pytest.mark.parametrize(("content", "words"), REFUSED.values(), ids=REFUSED)
def test_a_file_is_refused_in_the_same_words(tmp_path, content, words):
    path, said = write(tmp_path, content), []
    for stream in (True, False):
        with pytest.raises(RunError) as caught:
            explore(path, label="y", sensitive="x", model="linear", stream=stream)
        said.append(re.sub(r"Row #\d+: ", "", str(caught.value)))  # which a stream can tell
    assert said[0] == said[1]
    assert words in said[0]
    assert str(path) in said[0]


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"sheet": "one"}, "sheet is for Excel files"),
        ({"encoding": "x"}, "one of text that Python knows"),
    ],
)
def test_arguments_of_other_files_are_refused_alike(tmp_path, given, match):
    path = write(tmp_path, "x,y\na,1\nb,0\n")
    for stream in (True, False):
        with pytest.raises(RunError, match=match):
            explore(path, label="y", sensitive="x", **given, stream=stream)

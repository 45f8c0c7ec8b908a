"""Malformed commands and files: a sentence on stderr, no traceback, the exit code of the docs."""

import shlex

import pytest
from tests.people import people

from apfex.cli import main

FILES = {
    "empty.csv": b"",
    "header.csv": b"a,sex,hired\n",
    "ragged.csv": b"a,b,c\n1,2,3\n1,2\n1,2,3,4\n",
    "binary.csv": bytes(range(256)) * 20,
    "latin.csv": "name,sex,y\nJos\xe9,F,1\nM\xfcller,M,0\n".encode("latin-1") * 20,
    "twice.csv": b"a,a,y\n1,2,0\n3,4,1\n" * 10,
    "fake.csv.gz": b"not gzip",
    "fake.parquet": b"PAR1 no",
    "fake.xlsx": b"no",
    "list.json": b"[]",
}
AUDIT = "audit people.csv --prediction hired --positive-prediction hired --sensitive sex"
EXPLORE = "explore people.csv --label hired --positive hired --sensitive sex"
COMMANDS = {
    # command, and what is shown of what was found
    "nothing": "'nothing'",
    "explor people.csv": "'explore'",
    "explore": "source",
    "explore nofile.csv": "nofile.csv",
    "explore people.cvs --label y": "did you mean people.csv?",
    "explore adullt": "did you mean 'adult'?",
    "explore people.csv": "--label and --sensitive",
    "explore people.csv --labl hired": "--label",
    "explore people.csv --label hird --sensitive sex": "did you mean 'hired'?",
    "explore people.csv --label hired --sensitive sx": "did you mean 'sex'?",
    "explore people.csv --label hired --sensitive hired": "different",
    "explore people.csv --label hired --sensitive sex": "--positive",
    "explore people.csv --label hired --positive Yess --sensitive sex": "'Yess'",
    "explore people.csv --label merit_1 --sensitive sex": "numbers from",
    "explore people.csv --label hired --positive hired --sensitive merit_1": "300",
    f"{EXPLORE} --favorable x": "'x'",
    f"{EXPLORE} --drop zz": "'zz'",
    f"{EXPLORE} --criteria ddp": "did you mean 'dp'?",
    f"{EXPLORE} --model tre": "got 'tre'",
    f"{EXPLORE} --seed x": "--seed must be a whole number, got 'x'",
    f"{EXPLORE} --seed 12345678901234567890": "--seed must be a whole number from 0 to 2**32 - 1",
    f"explore {'x' * 300} --label hired --sensitive sex": "a name of more than 255 bytes",
    f"{EXPLORE} --out {'x' * 300}": "--out must be a path that the system takes, got a name of",
    "explore '' --label hired --sensitive sex": "source must be a path, got an empty one",
    "audit '' --prediction hired --sensitive sex": "source must be a path, got an empty one",
    f"audit {'x' * 300} --prediction hired --sensitive sex": "a name of more than 255 bytes",
    f"report {'x' * 300}": "a name of more than 255 bytes",
    "predict new.csv people.csv": "There is no run new.csv",
    "predict people.csv people.csv": "people.csv is no run of apfex: name the folder that",
    "explore - --label hired --sensitive sex": "got -, the standard input",
    "audit - --prediction hired --sensitive sex": "got -, the standard input",
    "audit - --prediction hired --sensitive sex --where sex=F": "got -, the standard input",
    f"predict {'x' * 300} people.csv": "a name of more than 255 bytes",
    f"{EXPLORE} --points 99999999999": "--points must be a whole number from 1 to 2,147,483,647",
    f"{EXPLORE} --threads 99999": "--threads must be a whole number from 1 to 4,096, got 99999",
    f"{EXPLORE} --points 0": "--points must be at least 1, got '0'",
    f"{EXPLORE} --points x": "got 'x'",
    f"{EXPLORE} --confidence 95": "--confidence must lie between 0.5 and 0.999, got 95",
    f"{EXPLORE} --tolerance x": "--tolerance must be a number, got 'x'",
    f"{EXPLORE} --max-gap x": "'x'",
    f"{EXPLORE} --max-gap -1": "-1",
    f"{EXPLORE} --max-gap dpp=0.1": "did you mean 'dp'?",
    f"{EXPLORE} --bins merit_1": "'merit_1'",
    f"{EXPLORE} --bins town=1,2": "'town'",
    f"{EXPLORE} --weight sex": "different",
    f"{EXPLORE} --weight merit_1": "at least 0",
    f"{EXPLORE} --encoding utf-99": "'utf-99'",
    f"{EXPLORE} --encoding zlib": "--encoding must be one of text that Python knows",
    f"{AUDIT} --encoding rot13": "got 'rot13'",
    f"{AUDIT} --markdown folder": "--markdown folder cannot be written: Is a directory",
    f"{AUDIT} --markdown nowhere/a.md": "--markdown nowhere/a.md cannot be written: No such file",
    f"{EXPLORE} --out people.csv": "exists already",
    "explore empty.csv --label y --sensitive sex": "is empty",
    "explore header.csv --label hired --sensitive sex": "no rows",
    "explore ragged.csv --label a --sensitive b": "Expected 3 columns, got 2",
    "explore binary.csv --label a --sensitive b": "UTF-8",
    "explore latin.csv --label y --sensitive sex": "--encoding",
    "explore twice.csv --label y --sensitive a": "'a'",
    "explore fake.csv.gz --label y --sensitive a": "gzip",
    "explore fake.parquet --label y --sensitive a": "Parquet",
    "explore fake.xlsx --label y --sensitive a": "Excel",
    "explore folder --label y --sensitive a": "folder",
    "audit": "FILE",
    "audit people.csv": "--prediction",
    "audit nofile.csv --prediction y --sensitive sex": "nofile.csv",
    "audit empty.csv --prediction y --sensitive sex": "is empty",
    "audit header.csv --prediction hired --sensitive sex": "no rows",
    "audit binary.csv --prediction y --sensitive sex": "UTF-8",
    "audit ragged.csv --prediction a --sensitive b": "Expected 3 columns, got 2",
    "audit fake.parquet --prediction a --sensitive b": "fake.parquet",
    "audit folder --prediction a --sensitive b": "folder",
    "audit 'folder/*.parquet' --prediction a --sensitive b": "none",
    "audit people.csv --prediction hird --sensitive sex": "did you mean 'hired'?",
    "audit people.csv --prediction merit_1 --sensitive sex": "--threshold",
    "audit people.csv --prediction merit_1 --threshold x --sensitive sex": "got 'x'",
    "audit people.csv --prediction hired --positive-prediction yes --sensitive sex": "'yes'",
    f"{AUDIT} --label hird": "did you mean 'hired'?",
    f"{AUDIT} --fail-on 'dpp_gap > 0.1'": "did you mean 'dp_gap'?",
    f"{AUDIT} --fail-on ''": "--fail-on",
    f"{AUDIT} --tolerance 2": "--tolerance must be at least 0 and below 1, got 2",
    f"{AUDIT} --confidence 95": "--confidence must lie",
    f"{AUDIT} --min-count 0": "--min-count must be at least 1, got 0",
    f"{AUDIT} --where sex=F --where sex=M": "--where must name 'sex' once, got it twice; put all",
    f"{AUDIT} --bins age=25 --bin age=45": "--bins must name 'age' once, got it twice; put all",
    f"{AUDIT} --positive-prediction x": "--positive-prediction must be given once, got it 2 times",
    f"{AUDIT} --tolerance 0.1 --tolerance=0.2": "--tolerance must be given once, got it 2 times",
    f"{EXPLORE} --positive dismissed": "once, got it 2 times; keep the one that is meant, or put",
    f"{EXPLORE} --max-gap dp=0.1 --max-gap tpr=0.1": "--max-gap must be given once",
    f"{EXPLORE} --max-gap dp=0.1,dp=0.5": "--max-gap must name 'dp' once, got it twice",
    f"{EXPLORE} --max-gap dp=0.1,demographic_parity=0.5": "'demographic_parity' beside 'dp'",
    f"{EXPLORE} --cost false_positive=1,false-positive=5": "--cost must name 'false_positive' once",
    f"{EXPLORE} --class-weight positive=5,positive=2": "--class-weight must name 'positive' once",
    "predict apfex-people new.csv --out a.csv --out b.csv": "--out must be given once",
    f"{AUDIT} --where sx=F": "did you mean 'sex'?",
    f"{AUDIT} --where sex": "'sex'",
    f"{AUDIT} --metrics auc": "--score",
    f"{AUDIT} --weight town": "--weight town",
    f"{AUDIT} --criteria tpr": "--label",
    f"{AUDIT} --out people.csv": "exists already",
    "predict": "run",
    "predict nofolder people.csv": "nofolder",
    "predict folder people.csv": "run.json",
    "predict list.json people.csv": "list.json",
    "report nofolder": "nofolder",
    "report folder": "run.json",
    "rerun nofolder": "nofolder",
    "rerun folder": "run.json",
    "datasets zz": "'zz'",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("malformed")
    people().to_csv(folder / "people.csv", index=False)
    (folder / "folder").mkdir()
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_said_of_a_bad_command(command, place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    before = {path.name: path.stat().st_mtime_ns for path in place.iterdir()}
    assert main(shlex.split(command)) == 2
    out, err = capsys.readouterr()
    said = " ".join(err.split()).rpartition("Error: ")[2]
    assert COMMANDS[command] in said
    assert "Traceback" not in out + err
    assert "should not have happened" not in err
    to_copy = "for instance --" in said  # such an end is to be copied into a terminal
    assert said.endswith((".", "?")) or to_copy
    assert {path.name: path.stat().st_mtime_ns for path in place.iterdir()} == before

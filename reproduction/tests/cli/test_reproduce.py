"""``apfex reproduce``: tables and figure from records, and what is said when it cannot be."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from reproduction.tests.experiments.test_records import files, nearly_full_disk

from apfex.cli import main
from apfex_reproduction.experiments import RecordFolder

METHODS = ("always-0", "always-1", "plain")
TYPED = ("reproduce", "table2", "--datasets", "heart", "--seeds", "1", "--jobs", "1")


def typed(out: Path, *more: str, methods: str = ",".join(METHODS)) -> list[str]:
    return [*TYPED, "--methods", methods, "--out", str(out), *more]


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the records and tables of one seed."""
    out = tmp_path_factory.mktemp("reproduction")
    assert main(typed(out)) == 0
    return out


def stamps(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*-000.json")}


def test_the_table_is_printed_with_flags_and_the_papers_numbers(apfex, reproduced):
    before = stamps(reproduced)
    done = apfex(*typed(reproduced))
    assert done.code == 0
    assert stamps(reproduced) == before  # nothing ran again
    assert "Table 2 on heart: split 70/15/15 (207 training / 45 validation / 45" in done.out
    lines = done.out.splitlines()
    always = next(line for line in lines if line.startswith("Always 1"))
    assert always.split()[2:] == [*(".467", *[".000"] * 6, ".500", "1.000", ".000"), "1", "CONST"]
    assert any(line.startswith("Baseline") and " 0/1" in line for line in lines)
    assert "paper .8219/.2589/.2292" in done.out
    assert "Written: " in done.out
    assert "3/3" in done.err


def test_tables_are_written_in_three_forms_and_the_same_again(apfex, reproduced):
    made = {suffix: reproduced / f"table2-nearest{suffix}" for suffix in (".md", ".tex", ".html")}
    before = {suffix: path.read_bytes() for suffix, path in made.items()}
    assert "| Always 0 |" in before[".md"].decode()
    assert r"\begin{tabular}" in before[".tex"].decode()
    assert "<table" in before[".html"].decode()
    for text in before.values():
        assert b"CONST" in text
        assert b"Baseline" in text
    assert apfex(*typed(reproduced)).code == 0
    assert {suffix: path.read_bytes() for suffix, path in made.items()} == before


def test_json_is_one_document_and_everything_else_is_elsewhere(apfex, reproduced):
    done = apfex(*typed(reproduced, "--json"))
    document = json.loads(done.out)
    assert document["experiment"] == "table2"
    assert (document["split"], document["rule"]) == ("70/15/15", "nearest")
    assert [record["method"] for record in document["records"]] == list(METHODS)
    assert not {"trace", "points", "front"} & set(document["records"][2])
    assert all(Path(name).is_file() for name in document["files"])
    assert "Table 2 on heart" in done.err


def test_a_result_saved_beside_the_records_does_no_harm(apfex, reproduced):
    saved = reproduced / "result.json"
    saved.write_text(apfex(*typed(reproduced, "--json")).out)
    assert apfex(*typed(reproduced)).code == 0
    saved.unlink()


def test_rules_have_tables_of_their_own(apfex, reproduced):
    before = (reproduced / "table2-nearest.md").read_bytes()
    assert apfex(*typed(reproduced, "--rule", "last")).code == 0
    assert "model chosen by 'last'" in (reproduced / "table2-last.md").read_text()
    assert (reproduced / "table2-nearest.md").read_bytes() == before


def test_names_may_be_given_one_by_one_or_with_commas(apfex, tmp_path):
    words = ("--datasets", "german", "--datasets", "heart", "--methods", "always-1, always-0")
    done = apfex("reproduce", "table1", *words, "--seeds", "1", "--jobs", "1", "--out", tmp_path)
    assert done.code == 0
    found = {(r["dataset"], r["method"]) for r in RecordFolder(tmp_path).read()}
    assert found == {(d, m) for d in ("german", "heart") for m in ("always-0", "always-1")}
    assert done.out.index("Table 1 on german") < done.out.index("Table 1 on heart")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("--datasets", "hart"), "--datasets must be among .*'hart'; did you mean 'heart'"),
        (("--split", "mamo"), "among adult, compas with --split mamo, got 'heart'"),
        (("--methods", "plane"), "got 'plane'; did you mean 'plain'"),
        (("--methods", "roc"), "methods must be among always-0.*got 'roc'"),  # of the other table
        (("--seeds", "0"), "--seeds"),
        (("--jobs", "0"), "--jobs must be a number of processes, or -1 .* got 0"),
        (
            ("--scheduler", "tcp://a:1"),
            "--scheduler must come with --backend dask or ray, got 'tcp",
        ),
        (
            ("--backend", "dask", "--scheduler", "tcp://a:1"),
            "--jobs must be left out with --scheduler, .* got 1",
        ),
        (("--backend", "slurm"), "slurm.*apfex reproduce --help"),
        (("--rule", "best"), "best.*apfex reproduce --help"),
    ],
)
def test_a_wrong_word_is_named_with_what_there_is(change, said, apfex, tmp_path):
    out = tmp_path / "new"
    done = apfex(*TYPED, "--out", out, *change)
    assert done.code == 2
    assert done.out == ""
    assert re.search(said, done.err.replace("\n", " ")), done.err
    assert not out.exists()  # nothing was begun


@pytest.mark.skipif(find_spec("ray") is not None, reason="Ray is there")
def test_a_backend_that_is_not_installed_is_named_in_a_line(apfex, tmp_path):
    done = apfex(*typed(tmp_path, "--backend", "ray"))
    assert done.code == 2
    assert 'The backend ray needs the package ray: pip install "apfex[ray]".' in done.err
    assert list(RecordFolder(tmp_path).read()) == []


@pytest.mark.slow
def test_the_workers_of_a_cluster_run_it(two_workers, apfex, reproduced, tmp_path):
    address = two_workers.scheduler.address
    words = (
        "--datasets",
        "heart",
        "--seeds",
        "1",
        "--methods",
        ",".join(METHODS),
        "--out",
        tmp_path,
    )
    done = apfex("reproduce", "table2", *words, "--backend", "dask", "--scheduler", address)
    assert done.code == 0
    assert "3/3" in done.err
    tables = [folder / "table2-nearest.md" for folder in (tmp_path, reproduced)]
    assert tables[0].read_bytes() == tables[1].read_bytes()


def test_the_plan_says_what_is_left_and_runs_nothing(apfex, reproduced, tmp_path):
    words = ("reproduce", "all", "--datasets", "heart", "--seeds", "1", "--jobs", "2", "--plan")
    before = apfex(*words, "--out", tmp_path / "new")
    after = apfex(*words, "--out", tmp_path / "new", "--earlier", reproduced)
    assert before.code == after.code == 0
    assert "columns of the tables: 20 runs left" in before.out
    assert "columns of the tables: 17 runs left" in after.out
    assert re.search(r"About \d+ processor minutes; \d+ minutes with 2 processes", after.out)
    assert not (tmp_path / "new").exists()


def test_all_of_it_takes_no_methods(apfex, tmp_path):
    done = apfex("reproduce", "all", "--methods", "plain", "--out", tmp_path / "new")
    assert done.code == 2
    assert "--methods, --variants and --split are not for 'all'" in done.err.replace("\n", " ")


def test_an_experiment_that_is_not_known_is_refused(apfex):
    done = apfex("reproduce", "table3")
    assert done.code == 2
    assert "table1" in done.err


def test_a_damaged_record_is_named_and_kept(apfex, tmp_path):
    apfex(*typed(tmp_path, methods="always-0"))
    damaged = tmp_path / "heart" / "70-15-15" / "always-0-000.json"
    damaged.write_text('{"format": 1, "data')
    done = apfex(*typed(tmp_path, methods="always-0"))
    assert done.code == 2
    assert "always-0-000.json is not a whole record" in done.err
    assert "remove it, and its run is repeated" in done.err
    damaged.unlink()
    assert apfex(*typed(tmp_path, methods="always-0")).code == 0


def test_records_of_another_version_are_refused(apfex, tmp_path):
    apfex(*typed(tmp_path, methods="always-0"))
    path = tmp_path / "heart" / "70-15-15" / "always-0-000.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 0}))
    done = apfex(*typed(tmp_path, methods="always-0"))
    assert done.code == 2
    assert "must be a record of format 1, got 0; it was written by another version" in done.err


def test_a_folder_in_use_is_not_touched(apfex, tmp_path):
    with RecordFolder(tmp_path).locked():
        done = apfex(*typed(tmp_path))
    assert done.code == 2
    assert "Another sweep is writing into" in done.err
    assert {name for name in files(tmp_path) if name != ".lock"} == set()


def test_a_file_in_place_of_the_folder_is_refused(apfex, tmp_path):
    (tmp_path / "out").write_text("mine")
    done = apfex(*typed(tmp_path / "out"))
    assert done.code == 2
    assert "must be a folder, got the file" in done.err
    assert (tmp_path / "out").read_text() == "mine"


def test_a_full_disk_is_told_in_a_sentence(apfex, tmp_path):
    with nearly_full_disk(50):
        done = apfex(*typed(tmp_path, methods="always-0"))
    assert done.code == 2
    assert "could not be written: File too large" in done.err
    assert "make room" in done.err
    assert {name for name in files(tmp_path) if name != ".lock"} == set()
    assert apfex(*typed(tmp_path, methods="always-0")).code == 0


def test_the_example_of_the_help_is_a_command(apfex):
    done = apfex("reproduce", "--help")
    assert done.code == 0
    assert "apfex reproduce table2 --datasets heart --seeds 2" in done.out


# Real processes.
@pytest.mark.slow
def test_a_fresh_process_prints_one_document(tmp_path):
    command = [sys.executable, "-m", "apfex.cli", *typed(tmp_path, "--json")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert len(json.loads(done.stdout)["records"]) == 3
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_the_figure_is_drawn_from_the_first_seed(apfex, tmp_path):
    figure = ("reproduce", "figure", "--datasets", "heart", "--seeds", "1", "--out", tmp_path)
    done = apfex(*figure, "--json")
    assert done.code == 0
    document = json.loads(done.out)
    assert [Path(name).name for name in document["files"]] == [
        *("figure.png", "figure.svg", "workflow.svg")
    ]
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    drawn = (tmp_path / "figure.svg").read_text()
    assert "heart" in drawn
    (record,) = RecordFolder(tmp_path).read()
    assert len(record["trace"]["step"]) == 50
    assert apfex(*figure).code == 0
    assert (tmp_path / "figure.svg").read_text() == drawn


def read_until(words: str, descriptor: int) -> str:
    """What a terminal shows up to these words."""
    shown = ""
    while words not in shown:
        shown += os.read(descriptor, 4096).decode()
    return shown


@pytest.mark.slow
def test_ctrl_c_says_how_to_go_on_and_the_same_command_does(apfex, tmp_path):
    arguments = ["reproduce", "table2", "--datasets", "heart", "--methods", "always-0,plain"]
    arguments += ["--out", str(tmp_path), "--jobs", "1"]
    command = [sys.executable, "-m", "apfex.cli", *arguments, "--seeds", "50"]
    ours, terminal = pty.openpty()
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=terminal,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "400", "OMP_NUM_THREADS": "1"},
        start_new_session=True,
    ) as running:
        os.close(terminal)
        errors = read_until("always-0 seed 1", ours)
        running.send_signal(signal.SIGINT)
        errors += read_until("Stopped.", ours)
        running.communicate()
    os.close(ours)
    assert running.returncode == 130
    assert "The finished runs are in" in errors
    assert "the same command goes on from there" in errors
    assert "Traceback" not in errors
    kept = stamps(tmp_path)
    assert kept
    done = apfex(*arguments, "--seeds", "2")
    assert done.code == 0
    assert {path: stamps(tmp_path)[path] for path in kept} == kept


@pytest.mark.parametrize("arguments", [["--help"], ["reproduce", "--help"]])
def test_help_lists_the_command_and_loads_nothing_heavy(arguments):
    code = (
        "import sys; from apfex.cli import main; main(sys.argv[1:]); "
        "print([m for m in ('torch', 'numpy', 'pandas', 'sklearn', 'matplotlib', 'pymoo', "
        "'joblib', 'apfex_reproduction.experiments') if m in sys.modules])"
    )
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Run the paper's experiments" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"

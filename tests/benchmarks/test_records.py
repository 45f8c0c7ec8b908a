# pyright: reportMissingImports=false
from front.records import PROTOCOL, read_records, write_record


def test_the_latest_record_of_a_run_counts(tmp_path, make_record):
    for seconds in (1.0, 2.0):
        write_record(tmp_path, make_record(seconds=seconds))
    (record,) = read_records(tmp_path).values()
    assert record == make_record(seconds=2.0)


def test_a_half_written_last_line_is_ignored_and_written_past(tmp_path, make_record):
    write_record(tmp_path, make_record(seed=0))
    write_record(tmp_path, make_record(seed=1))
    path = tmp_path / "heart.jsonl"
    path.write_bytes(path.read_bytes()[:-40])
    assert [run.seed for run in read_records(tmp_path)] == [0]
    write_record(tmp_path, make_record(seed=2))
    assert [run.seed for run in read_records(tmp_path)] == [0, 2]


def test_records_name_the_protocol_and_others_are_not_read(tmp_path, make_record):
    record = make_record()
    del record["protocol"]
    write_record(tmp_path, record)
    (found,) = read_records(tmp_path).values()
    assert found["protocol"] == PROTOCOL
    write_record(tmp_path, make_record(seed=1, protocol=PROTOCOL + 1))
    assert [run.seed for run in read_records(tmp_path)] == [0]


def test_no_folder_has_no_records(tmp_path):
    assert read_records(tmp_path / "none") == {}

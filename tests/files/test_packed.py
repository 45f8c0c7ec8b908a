"""A packed file that would fill a memory is refused before anything of it is held."""

import gzip
import io
import zipfile

import pytest
from tests.forgeries.mutations import bomb

from apfex.auditing import audit_table
from apfex.files._packed import check_gzip, check_zip, unpacked_size


def test_a_small_file_that_grows_a_thousand_times_is_refused(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(bomb(b"a,b\n", b"1" * 97 + b",1\n", 10**6))
    assert path.stat().st_size < 2**19
    with pytest.raises(ValueError, match=r"must not grow more than 100 times .* \(gunzip\)"):
        check_gzip(path)
    with pytest.raises(ValueError, match="must not grow more than 100 times"):
        audit_table(str(path), prediction="a", sensitive="b", criteria="dp")


def test_files_that_grow_as_tables_do_are_read(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"1,1\n" * 10**5))
    check_gzip(path)
    path.write_bytes(gzip.compress(b"a,b\n")[:-3])
    with pytest.raises(ValueError, match="cannot be read"):
        check_gzip(path)


def test_a_packed_file_tells_what_it_holds(tmp_path):
    path, rows = tmp_path / "t.csv.gz", b"a,b\n" + b"1,1\n" * 10**5
    path.write_bytes(gzip.compress(rows))
    assert unpacked_size(path) == len(rows)
    path.write_bytes(gzip.compress(rows) + gzip.compress(b"1,1\n"))  # whose end tells of 4 bytes
    assert unpacked_size(path) == 5 * path.stat().st_size
    path.write_bytes(b"gz")
    assert unpacked_size(path) == 2
    (tmp_path / "t.csv").write_bytes(rows)
    assert unpacked_size(tmp_path / "t.csv") == len(rows)


def test_an_archive_is_refused_by_what_it_says_of_its_parts(tmp_path):
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(2**27))
    (tmp_path / "t.zip").write_bytes(written.getvalue())
    with pytest.raises(ValueError, match="got 134,217,728 bytes in"):
        check_zip(tmp_path / "t.zip")
    with pytest.raises(ValueError, match="got 134,217,728 bytes in"):
        check_zip("model", written.getvalue())
    check_zip("model", b"no archive")  # which its reader will say

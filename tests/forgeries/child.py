"""Reads forged files in a process of its own, whose memory is capped.

``python -m tests.forgeries.child PRISTINE EXAMPLES SEED READER...`` ends with 0 where every file is
read, or refused with a sentence of ours; what is forged lies in ``PRISTINE/../forged`` if it fails.
"""

from __future__ import annotations

import resource
import shutil
import signal
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from tests.forgeries.readers import READERS, Reader

import apfex

CAP = 768 * 2**20
"""Bytes that reading may take, beyond what the libraries take."""
LIMIT = 60
"""Seconds of processor time that reading may take, whatever else the machine does."""
_OURS = str(Path(apfex.__file__).parent)
_REFUSALS = (ValueError, FileNotFoundError, NotADirectoryError)


def cap_memory(more: int = CAP) -> None:
    """From now on this process gets so many bytes more, and an error beyond."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def is_refusal(error: Exception) -> bool:
    """Whether it is a sentence, which this package has said itself."""
    said = str(error)
    last = traceback.extract_tb(error.__traceback__)[-1].filename
    is_ours = last.startswith(_OURS) or (isinstance(error, OSError) and last.endswith("images.py"))
    return isinstance(error, _REFUSALS) and is_ours and said.count(" ") >= 3


def check(reader: Reader, folder: Path) -> None:
    """Read it, or be refused."""
    signal.setitimer(signal.ITIMER_PROF, LIMIT)
    try:
        reader.use(folder)
    except Exception as error:
        if not (is_refusal(error) or (isinstance(error, OSError) and "image" in str(error))):
            raise
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def fuzz(name: str, pristine: Path, examples: int, number: int) -> None:
    """Read many forgeries of one kind."""
    reader, forged = READERS[name], pristine.parent / f"forged-{name.replace(' ', '-')}"

    @seed(number)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        print_blob=False,
    )
    @given(st.data())
    def read(data: Any) -> None:
        shutil.rmtree(forged, ignore_errors=True)
        shutil.copytree(pristine / name, forged)
        file = data.draw(st.sampled_from(sorted(reader.forges)))
        path = forged / file
        path.write_bytes(reader.forges[file](data.draw, path.read_bytes()))
        reader.after(forged)
        check(reader, forged)

    read()
    shutil.rmtree(forged, ignore_errors=True)


def _alarm(*_: object) -> None:
    raise TimeoutError(f"it took more than {LIMIT} seconds of processor time")


def main() -> None:
    """Libraries are loaded before the cap is set."""
    warnings.simplefilter("ignore")
    pristine, examples, number, *names = sys.argv[1:]
    signal.signal(signal.SIGPROF, _alarm)
    for name in names:
        check(READERS[name], Path(pristine) / name)
    cap_memory()
    for name in names:
        print(name, flush=True)
        fuzz(name, Path(pristine), int(examples), int(number))


if __name__ == "__main__":
    main()

"""What workers do in these tests; they import this file alone, which is quick."""

import os
import signal
from pathlib import Path


def first_to(mark: Path) -> bool:
    """Whether nobody has made the file before."""
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def square_or_die(number: int, mark: Path) -> int:
    if number == 2 and first_to(mark):
        os.kill(os.getpid(), signal.SIGKILL)
    return number**2


def die(number: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL + 0 * number)


def say_and_wait(started: Path, never: Path) -> None:
    with started.open("w"), never.open():
        pass


def pid(number: int) -> int:
    return os.getpid() + 0 * number

"""Several processes that train one model, each on its rows of every batch.

A fairness loss is a nonlinear function of sums over the rows of all workers, so it is the *sums*
that workers add up, not losses: see :func:`all_sum`. Everything here is a no-op in one process.
"""

from apfex.distributed._rows import all_sum, global_mean, others_fail, sum_over
from apfex.distributed._torchrun import leave_word, torchrun_workers, words_of_others
from apfex.distributed._workers import (
    WorkerError,
    Workers,
    chosen_workers,
    measure_together,
    share_batches,
    workers,
    workers_of,
)

__all__ = ["WorkerError", "all_sum", "global_mean", "share_batches"]

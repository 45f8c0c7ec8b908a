"""What the command line does, from Python: a table on disk or in memory to a run.

:func:`explore` (also ``apfex.explore``) makes a :class:`Run`: the front of a table, its report, and
decisions for new rows; :func:`load_run` reads it from its folder, :func:`rerun` repeats it.
:func:`audit_file` audits the decisions in a table, and :func:`check_gates` says whether to stop.
Errors and warnings are :class:`RunError` and :class:`RunWarning`, which carry what they are about.
"""

from apfex.runs._audit import AuditRun, audit_file, load_audit
from apfex.runs._chosen_rows import common_rows, rows_in_words
from apfex.runs._columns import GroupCounts
from apfex.runs._data import RunData
from apfex.runs._explore import explore
from apfex.runs._folder import free_folder
from apfex.runs._gates import GateResult, check_gates, read_rule
from apfex.runs._rerun import rerun
from apfex.runs._run import Run, audit_in_words, load_any, load_run, rewrite_report
from apfex.sources import RunError, RunWarning

__all__ = [
    "AuditRun",
    "Run",
    "RunError",
    "RunWarning",
    "audit_file",
    "check_gates",
    "explore",
    "load_audit",
    "load_run",
    "rerun",
]

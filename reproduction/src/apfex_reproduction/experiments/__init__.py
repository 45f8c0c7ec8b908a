"""The paper's experiments: its protocol, its tables and its figure, repeated and judged."""

from apfex_reproduction.experiments import summaries
from apfex_reproduction.experiments._compare import compare_front
from apfex_reproduction.experiments._course import shortened
from apfex_reproduction.experiments._figure import draw_figure
from apfex_reproduction.experiments._grid import Column, Grid, Line
from apfex_reproduction.experiments._html import to_html
from apfex_reproduction.experiments._labels import data_name
from apfex_reproduction.experiments._latex import to_latex
from apfex_reproduction.experiments._layouts import comparison_grid, runs_grid
from apfex_reproduction.experiments._markdown import to_markdown
from apfex_reproduction.experiments._methods import (
    EXPERIMENTS,
    VARIANTS,
    read_methods,
    results_hold,
)
from apfex_reproduction.experiments._plots import draw_differences, draw_trade_offs
from apfex_reproduction.experiments._protocol import DATASETS, MAMO_SIZES
from apfex_reproduction.experiments._records import RecordFolder, key_of, write_pack
from apfex_reproduction.experiments._sweep import Sweep, known_records, run_sweep
from apfex_reproduction.experiments._tables import make_table
from apfex_reproduction.experiments._text import to_text
from apfex_reproduction.experiments._whole import Part, kind_of, plan_of, whole_study
from apfex_reproduction.experiments._workflow import draw_workflow

__all__ = [
    "DATASETS",
    "EXPERIMENTS",
    "MAMO_SIZES",
    "VARIANTS",
    "Column",
    "Grid",
    "Line",
    "Part",
    "RecordFolder",
    "Sweep",
    "compare_front",
    "comparison_grid",
    "data_name",
    "draw_differences",
    "draw_figure",
    "draw_trade_offs",
    "draw_workflow",
    "key_of",
    "kind_of",
    "known_records",
    "make_table",
    "plan_of",
    "read_methods",
    "results_hold",
    "run_sweep",
    "runs_grid",
    "shortened",
    "summaries",
    "to_html",
    "to_latex",
    "to_markdown",
    "to_text",
    "whole_study",
    "write_pack",
]

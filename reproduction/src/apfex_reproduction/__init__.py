"""The experiments of the APFEx paper, repeated and judged.

:mod:`~apfex_reproduction.baselines` has the methods that the paper compares,
:mod:`~apfex_reproduction.experiments` its protocol, tables and figure, and
:mod:`~apfex_reproduction.cli` the command ``apfex reproduce``. The study uses the product only by
its public names, and the product does not know the study.
"""

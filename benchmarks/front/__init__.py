"""What ``bench_front.py`` is made of.

Imports run one way: tables -> judge -> records -> runner, and records -> rows -> report; nothing
here knows a method by name but the one that sets the pace in ``report``.
"""

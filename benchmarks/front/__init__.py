"""What ``bench_front.py`` is made of.

Imports run one way: made -> tables -> judge -> runner, and records -> rows -> report and plan;
nothing here knows a method by name but the report, which knows the forms that it compares.
"""

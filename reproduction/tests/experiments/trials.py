"""A small trial, and a budget that is spent in a moment."""

from apfex.datasets import make_biased
from apfex_reproduction.experiments._protocol import Trial, split_dataset

QUICK = {"epochs": 3, "batch_size": 64, "learning_rate": 0.01}


def trial(n: int = 400, seed: int = 0, **options) -> Trial:
    return split_dataset(make_biased(n, random_state=0, **options), "70/15/15", seed)

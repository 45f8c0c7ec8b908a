"""Fits on a CUDA device: a seed is a promise there, too."""

import pytest
import torch
from tests.estimator.tables import DATA, quick

from apfex.datasets import make_biased

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
LARGE = make_biased(12_000, kind="marginal", strength=0.4, random_state=0)


def network(n_features: int, n_outputs: int) -> torch.nn.Module:
    layers = torch.nn.Linear(n_features, 8), torch.nn.ReLU(), torch.nn.Linear(8, n_outputs)
    return torch.nn.Sequential(*layers)


@pytest.mark.parametrize("data", [DATA, LARGE], ids=["small", "large"])
@pytest.mark.parametrize(
    "settings",
    [
        {"search": "postprocess"},
        {"search": "postprocess", "grouping": "attributes", "criteria": ("dp", "tpr")},
        {"search": "inprocess"},
        {"search": "inprocess", "hidden": (32, 16), "criteria": "equalized_odds"},
        {"search": "inprocess", "patience": 2},
        {"model": network},
    ],
    ids=["rules", "rules by attribute", "members", "deep members", "patience", "factory"],
)
def test_two_fits_of_one_seed_are_one_front(settings, data):
    fronts = [
        quick(**settings, batch_size=1024, device="cuda").fit(
            data.X, data.y, sensitive_features=data.sensitive
        )
        for _ in range(2)
    ]
    first, second = (clf.front_.to_frame() for clf in fronts)
    assert first.equals(second)
    for place in range(len(first)):
        scores = [clf.at(place).decision_function(data.X) for clf in fronts]
        assert (scores[0] == scores[1]).all()


@pytest.mark.parametrize("search", ["postprocess", "inprocess"])
def test_three_classes_are_one_front_too(search):
    y = LARGE.y + (LARGE.X["merit_1"] > 1.0).to_numpy()
    fronts = [
        quick(search=search, batch_size=1024, device="cuda")
        .fit(LARGE.X, y, sensitive_features=LARGE.sensitive)
        .front_.to_frame()
        for _ in range(2)
    ]
    assert fronts[0].equals(fronts[1])

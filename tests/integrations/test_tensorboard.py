"""TensorBoard: real event files, read back by its own reader."""

from typing import Any

import pytest
import torch
from torch.utils.tensorboard import SummaryWriter

from apfex import APFEx, APFExClassifier, audit, make_biased
from apfex.integrations import TensorBoardLog
from apfex.runs import load_run

reader = pytest.importorskip(
    "tensorboard.backend.event_processing.event_accumulator",
    reason="the extra tensorboard is not installed",
)


def read(folder):
    found = reader.EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0})
    return found.Reload()


def scalars(folder, name):
    return [(event.step, event.value) for event in read(folder).Scalars(name)]


def steps_of(optimizer, theta, n):
    for _ in range(n):
        optimizer.backward([(theta - 1).square().sum(), (theta + 1).square().sum()])
        optimizer.step()
        yield


def test_a_training_is_seen_while_it_runs(tmp_path):
    theta = torch.nn.Parameter(torch.zeros(1))
    optimizer = APFEx(torch.optim.SGD([theta], lr=0.1), window=2)
    seen = []
    with TensorBoardLog(tmp_path, objectives=("left", "right")) as board:
        for _ in steps_of(optimizer, theta, 7):
            board.log(optimizer.history)
            tags = read(tmp_path).Tags()["scalars"]
            seen.append(len(scalars(tmp_path, "loss/left")) if "loss/left" in tags else 0)
    assert seen == [0, 1, 1, 2, 2, 3, 3]  # each window once, as soon as it is complete
    found = scalars(tmp_path, "loss/left")
    assert [step for step, _ in found] == [0, 2, 4]
    history: Any = optimizer.history
    wanted = history.losses[:, 0].tolist()
    assert [value for _, value in found] == pytest.approx(wanted, rel=1e-6)
    tags = set(read(tmp_path).Tags()["scalars"])
    assert {"loss/right", "weight/left", "direction_norm", "omega"} <= tags
    assert "choice" not in tags


def test_a_trace_has_every_step_once(tmp_path):
    theta = torch.nn.Parameter(torch.zeros(1))
    optimizer = APFEx(torch.optim.SGD([theta], lr=0.1), window=3, trace=True)
    with TensorBoardLog(tmp_path) as board:
        for _ in steps_of(optimizer, theta, 5):
            board.log(optimizer.history)
        board.log(optimizer.history)
    found = scalars(tmp_path, "loss/0")
    history: Any = optimizer.history
    wanted = history.to_frame()
    assert [step for step, _ in found] == wanted["step"].tolist() == list(range(5))
    assert [value for _, value in found] == pytest.approx(wanted["loss0"].tolist(), rel=1e-6)


def test_a_run_has_its_front_its_training_and_its_card(tmp_path, finished):
    run = load_run(finished)
    with TensorBoardLog(tmp_path) as board:
        board.log(run)
    found = read(tmp_path)
    points = scalars(tmp_path, "front/error")
    wanted = [(place, p["error"]) for place, p in enumerate(run.described["points"])]
    assert [step for step, _ in points] == [step for step, _ in wanted]
    assert [v for _, v in points] == pytest.approx([v for _, v in wanted], rel=1e-6)
    chosen = run.described["points"][run.described["chosen"]]
    assert scalars(tmp_path, "error")[0][1] == pytest.approx(chosen["error"], rel=1e-6)
    texts = {name.removesuffix("/text_summary") for name in found.Tags()["tensors"]}
    assert {"model_card", "audit", "settings"} <= texts
    card = found.Tensors("model_card/text_summary")[0].tensor_proto.string_val[0].decode()
    assert "## Intended use" in card
    member = run.front[0].member
    training: Any = run.classifier.history_
    mine = training[training["member"] == member]
    assert len(scalars(tmp_path, f"member_{member}/loss/error")) == len(mine)


def test_audits_over_time_are_a_curve_and_a_given_writer_stays_open(tmp_path):
    data = make_biased(600, random_state=0)
    clf = APFExClassifier(model="linear", epochs=2, max_gap=1.0, random_state=0)
    clf.fit(data.X, data.y, sensitive_features=data.sensitive)
    writer = SummaryWriter(str(tmp_path))
    with TensorBoardLog(writer=writer) as board:
        for step, place in enumerate((0, len(clf.front_) - 1)):
            decided = clf.at(place).predict(data.X)
            board.log(audit(data.y, decided, sensitive_features=data.sensitive), step=step)
    writer.add_scalar("mine", 1.0)
    writer.close()
    assert [step for step, _ in scalars(tmp_path, "dp_gap/sex x origin")] == [0, 1]
    assert scalars(tmp_path, "mine") == [(0, 1.0)]


def test_a_folder_or_a_writer(tmp_path):
    with pytest.raises(ValueError, match="either a folder or a writer, got"):
        TensorBoardLog()
    with pytest.raises(ValueError, match="either a folder or a writer, got"):
        TensorBoardLog(tmp_path, writer=object())
    with TensorBoardLog(tmp_path) as board, pytest.raises(TypeError, match="what must be a Run"):
        board.log("x")

import pytest
import torch

from apfex.history import History, StepRecord


def record(losses, choice=0, members=(), **more) -> StepRecord:
    losses = torch.as_tensor(losses, dtype=torch.float64)
    return StepRecord(losses, losses / 2, torch.full(members, choice), torch.ones(members), **more)


def test_windows_are_means_of_their_steps():
    history = History(2, window=3)
    rows = torch.rand(7, 2, dtype=torch.float64)
    for row in rows:
        history.record(record(row))
    torch.testing.assert_close(history.losses, torch.stack([rows[:3].mean(0), rows[3:6].mean(0)]))
    torch.testing.assert_close(history.weights, history.losses / 2)
    assert history.n_windows == 2
    assert not history.starts_window


def test_members_are_kept_apart():
    history = History(2, window=1, members=(3,))
    losses = torch.rand(3, 2, dtype=torch.float64)
    choices = torch.tensor([0, 1, 2])
    history.record(StepRecord(losses, losses, choices, torch.ones(3)))
    assert torch.equal(history.losses[0], losses)
    assert torch.equal(history.last_choices(1)[0], choices)
    frame = history.to_frame()
    assert len(frame) == 3
    assert frame["loss1"].tolist() == losses[:, 1].tolist()


def test_the_longest_gradients_are_remembered():
    history = History(2, window=5)
    history.record(record([1, 1], norms=torch.tensor([1.0, 4.0])))
    history.record(record([1, 1]))
    history.record(record([1, 1], norms=torch.tensor([2.0, 3.0])))
    assert history.largest_norms.tolist() == [2.0, 4.0]


def test_of_the_slack_a_window_keeps_the_worst():
    history = History(1, window=3)
    for slack in (None, 0.5, 0.2, 0.1, 0.3, None, None, None, None):
        value = None if slack is None else torch.tensor(slack, dtype=torch.float64)
        history.record(record([1.0], slack=value))
    told = history.to_frame()["slack"]
    assert told[:2].tolist() == [0.5, 0.3]
    assert told.isna().tolist() == [False, False, True]


def test_share_of_harmful_steps():
    history = History(1, window=1)
    assert history.harmful_share == 0
    for harmful in (True, False, None, False, None, False):
        flag = None if harmful is None else torch.tensor(harmful)
        history.record(record([1.0], harmful=flag))
    assert history.harmful_share == 0.25


@pytest.mark.parametrize("trace", [False, True])
def test_frame_has_a_row_per_step_or_window(trace):
    history = History(2, window=2, trace=trace)
    for step in range(6):
        history.record(record([step, 1.0], choice=step // 2))
    frame = history.to_frame()
    assert frame["step"].tolist() == (list(range(6)) if trace else [0, 2, 4])
    assert frame["loss0"].tolist() == (list(range(6)) if trace else [0.5, 2.5, 4.5])
    assert frame["choice"].tolist() == ([0, 0, 1, 1, 2, 2] if trace else [0, 1, 2])
    assert history.n_rows == len(frame)


@pytest.mark.parametrize("steps", [0, 3, 4])
def test_a_checkpoint_continues_the_same(steps):
    def run(history: History, rows) -> History:
        for row in rows:
            history.record(record(row, norms=row, omega=row.sum(), slack=row.prod()))
        return history

    rows = torch.rand(9, 2, dtype=torch.float64)
    whole = run(History(2, window=2, trace=True), rows)
    first = run(History(2, window=2, trace=True), rows[:steps])
    second = run(History.from_state_dict(first.state_dict()), rows[steps:])
    assert whole.to_frame().equals(second.to_frame())
    assert torch.equal(whole.losses, second.losses)
    assert torch.equal(whole.largest_norms, second.largest_norms)
    assert first.step == steps


def test_bad_window():
    with pytest.raises(ValueError, match="window must be at least 1, got 0"):
        History(2, window=0)


def test_rescaling_reaches_every_loss_and_nothing_else():
    """Those of closed windows, of the window under way and of the trace."""
    rows, factor = torch.rand(5, 2, dtype=torch.float64), torch.tensor([2.0, 0.5])
    plain, scaled = History(2, window=2, trace=True), History(2, window=2, trace=True)
    for row in rows:
        plain.record(record(row))
        scaled.record(record(row))
    for ones in (torch.ones(2), factor):
        scaled.rescale(ones.double())
    last = record([1.0, 1.0])
    plain.record(record(1 / factor))
    scaled.record(last)
    torch.testing.assert_close(scaled.losses, plain.losses * factor)
    told, expected = scaled.to_frame(), plain.to_frame()
    assert told["loss0"].tolist() == pytest.approx((2 * expected["loss0"]).tolist())
    assert told["loss1"].tolist() == pytest.approx((expected["loss1"] / 2).tolist())
    torch.testing.assert_close(scaled.weights[:2], plain.weights[:2])


def test_norms_are_forgotten_on_demand():
    history = History(2, window=5)
    history.record(record([1, 1], norms=torch.tensor([1.0, 4.0])))
    history.forget_norms()
    assert history.largest_norms.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("trace", [False, True])
def test_choices_have_names_where_there_are_names(trace):
    named = History(1, window=1, trace=trace, choice_names=("PCP", "AW"))
    plain = History(1, window=1, trace=trace)
    for choice in (0, 1, 7):
        named.record(record([1.0], choice=choice))
        plain.record(record([1.0], choice=choice))
    assert named.to_frame()["strategy"].tolist() == ["PCP", "AW", "7"]
    assert named.to_frame().columns[2] == "strategy"
    assert "strategy" not in plain.to_frame()


def test_without_a_window_there_are_no_rows():
    history = History(3, window=2, members=(4,))
    history.record(record(torch.ones(4, 3), members=(4,)))
    assert history.losses.shape == (0, 4, 3)
    assert history.weights.shape == (0, 4, 3)


def test_what_was_not_measured_is_nan_in_every_column():
    history = History(2, window=1, trace=True)
    history.record(record([1.0, 2.0], norms=torch.tensor([3.0, 4.0])))
    history.record(record([1.0, 2.0]))
    frame = history.to_frame()
    assert frame[["norm0", "norm1"]].values.tolist()[0] == [3.0, 4.0]
    assert frame[["norm0", "norm1"]].isna().values.tolist() == [[False, False], [True, True]]


def test_a_trace_has_a_column_for_each_objective_also_where_nothing_was_measured():
    history = History(2, window=1, trace=True)
    history.record(record([1.0, 2.0]))
    assert history.to_frame()[["norm0", "norm1"]].isna().to_numpy().all()


def test_a_history_keeps_no_graph_and_steps_only_for_a_trace():
    history = History(2, window=2)
    losses = torch.rand(2, dtype=torch.float64, requires_grad=True)
    for _ in range(3):
        history.record(StepRecord(losses * 2, losses * 2, torch.tensor(0), torch.tensor(1.0)))
    assert not history.losses.requires_grad
    assert not any(part.requires_grad for part in history.state_dict()["sums"].values())
    assert history.state_dict()["steps"] == []
    assert History(1, window=1).losses.dtype == torch.float64


def test_a_notebook_shows_the_last_steps_and_a_dash_where_nothing_was_measured():
    history = History(1, window=1, trace=True)
    for step in range(9):
        history.record(record([step + 0.25], norms=torch.ones(1) if step == 8 else None))
        if step == 2:
            assert history._repr_html_().count(".25<") == 3
    shown = history._repr_html_()
    assert [value for value in range(9) if f">{value}.25<" in shown] == [4, 5, 6, 7, 8]
    assert shown.count(">-<") >= 4
    assert "nan" not in shown

"""What is wrong on one worker is an error on all of them, and no worker waits forever."""

import pytest
from tests.distributed.failures import FAILURES

EVERYWHERE = {
    "skipped_batch": "Workers must do the same in the same order",
    "other_losses": "losses must be as many as before (2), got 1.",
    "no_rows": "scores must have at least one row on some worker",
    "no_weight": "must have a row of positive weight on some worker",
    "other_sizes": "values must have one shape on all workers, got sizes [2.0, 3.0, 4.0] by rank.",
    "groups_of_parts": "groups must mean the same on all workers",
    "kinds_of_groups": "memberships in as many groups on all workers, got [[5], [6], [5]]",
    "other_bounds": "constraints must have the same value on all workers",
    "active_on_one": "Which constraints are active (a bit for each) must be the same",
    "other_parameters": "The parameters must be the same on all workers",
    "other_settings": "Strategy, seed, window and scales (a checksum) must be the same",
    "other_order": "inputs must be the same on all workers",
    "other_inputs": "inputs must be the same on all workers",
    "other_sign": "inputs must be the same on all workers",
    "other_weights": "weights must be the same on all workers",
    "more_inputs": "encoded inputs must be the same on all workers, as each of them has all rows, "
    "in the same order of rows and columns, got [4, 8, 4] by rank.",
    "fit_rows": "table, got [120, 119, 120] by rank.",
    "fit_columns": "The columns of X must be the same, in the same order, on all workers",
    "fit_fewer_columns": "X must have as many columns on all workers",
    "fit_levels": "other ones on worker 1 than on worker 0 in ['town'].",
    "fit_missing": "other ones on worker 1 than on worker 0 in ['merit_1'].",
    "fit_labels": "y must be the same on all workers",
    "fit_groups": "sensitive_features must be the same on all workers",
    "fit_weights": "sample_weight must be the same on all workers",
    "fit_settings": "max_gap and n_estimators must be the same on all workers",
    "fit_seed": "random_state must be the same on all workers",
    "fit_stream": "other ones on worker 1 than on worker 0 in ['town'].",
    "fit_stream_labels": "y must be the same on all workers",
    "too_many_micro_batches": "The number of micro-batches before a step must be the same",
}
"""What every worker is told."""
OF_SHARDS = {
    "sharded_without_outputs": "backward(losses, outputs=scores)",
    "other_whole_parameters": "The parameters must be the same on all workers",
    "flat_parameters": "wrap the model with fully_shard(model) instead",
}
ON_ONE = {
    "nan_in_rows": (1, "losses[0] must be finite, got nan"),
    "nan_in_own_loss": (1, "losses[0] must be finite, got nan"),
    "wrong_rows": (0, "values must be floats of shape [n]"),
    "fit_infinite": (1, "Column 'merit_1' of X must be finite, got inf in row 3"),
    "wrong_label": (2, "y must hold labels from 0 to 1"),
}
"""Which worker fails, and what it says."""


def test_every_failure_is_looked_at():
    assert set(FAILURES) == {*EVERYWHERE, *ON_ONE}


@pytest.mark.parametrize("name", EVERYWHERE)
def test_all_workers_are_told(told, name):
    for rank, one in enumerate(told):
        assert EVERYWHERE[name] in one[name]["message"], rank
        changed = name in ("other_parameters", "other_settings", "too_many_micro_batches")
        assert one[name]["unchanged"] or changed


@pytest.mark.parametrize("name", ON_ONE)
def test_the_others_are_told_what_one_says(told, name):
    failing, message = ON_ONE[name]
    for rank, one in enumerate(told):
        assert message in one[name]["message"]
        assert one[name]["type"] == ("ValueError" if rank == failing else "WorkerError")
        assert (f"Worker {failing} of 3 has failed" in one[name]["message"]) == (rank != failing)
        assert one[name]["unchanged"]


def test_a_worker_that_dies_does_not_leave_others_waiting(ranks):
    assert "The disk is full." in ranks.ended[2].out
    for rank in range(2):
        one = ranks.told[rank]["dies"]
        assert one["type"] == "WorkerError"
        assert f"Worker {rank} of 3 gets no answer from another worker" in one["message"]
        assert "start all of them from the last checkpoint" in one["message"]
        assert "has had fewer batches" in one["message"]
        assert "does not call fit (within share_batches all must" in one["message"]


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_SHARDS)
def test_what_shards_cannot_do_is_refused(heavy, name):
    for one in heavy.told:
        assert OF_SHARDS[name] in one[name]["message"]

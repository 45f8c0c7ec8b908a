"""The model card of a run: YAML front matter and Markdown, as Hugging Face has them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from apfex.markup import in_markdown
from apfex.plain import printable
from apfex.runs._folder import run_id
from apfex.sources import RunError

if TYPE_CHECKING:
    from apfex.runs._run import Run

_UNKNOWN = "[More Information Needed]"
_TAGS = ("tabular-classification", "fairness", "intersectional-fairness", "apfex")
_TASK = {"type": "tabular-classification", "name": "Tabular Classification"}


def write_card(run: Run, license: str | None) -> str:
    """The whole card; every name from the data is text."""
    try:
        return _card(run, license)
    except (LookupError, TypeError, AttributeError) as error:
        if run.folder is None:
            raise
        raise RunError(  # whoever has written its record may leave out any part of it
            f"{run.folder} is damaged: its record lacks what a card tells ({error!r}); take it "
            "from a copy, or do the run again.",
            found=run.folder,
        ) from error


def _card(run: Run, license: str | None) -> str:
    parts = [
        _front_matter(run, license),
        f"# {in_markdown(_name(run))}",
        in_markdown(run.conclusion.text),
        _section("Intended use", _use(run)),
        _section("Data", _data(run)),
        _section("Groups", _groups(run)),
        _section("Evaluation", [_evaluation(run), run.audit.to_markdown().strip()], "\n\n"),
        _section("Limits", _limits(run)),
        _section("How it was made", _made(run)),
        _section("How to use it", [_USAGE], "\n\n"),
    ]
    return "\n\n".join(parts) + "\n"


def _name(run: Run) -> str:
    return f"Decisions on {run.record['data']['label']} in {run.record['data']['name']}"


def _front_matter(run: Run, license: str | None) -> str:
    """YAML, its values written as JSON, which YAML contains: nothing in them is markup."""
    metadata: dict[str, Any] = {} if license is None else {"license": license}
    metadata |= {
        "library_name": "apfex",
        "pipeline_tag": "tabular-classification",
        "tags": list(_TAGS),
        "model-index": [{"name": _name(run), "results": [_result(run)]}],
    }
    lines = [
        f"{key}: {json.dumps(_shown(value), ensure_ascii=False)}" for key, value in metadata.items()
    ]
    return "\n".join(["---", *lines, "---"])


def _shown(value: Any) -> Any:
    """The same with every text printable."""
    if isinstance(value, Mapping):
        return {key: _shown(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_shown(part) for part in value]
    return printable(value) if isinstance(value, str) else value


def _result(run: Run) -> dict[str, Any]:
    """Accuracy and gaps of the chosen point on the test rows."""
    data, point = run.record["data"], _chosen(run)
    metrics: list[dict[str, Any]] = [
        {"type": "accuracy", "value": 1 - point["error"], "name": "Accuracy"}
    ]
    for gap in point["gaps"]:
        if gap["gap"] is not None:
            name = f"{gap['criterion']} gap by {gap['by']}"
            metrics.append({"type": f"{gap['criterion']}_gap", "value": gap["gap"], "name": name})
    # what a column of the Hub shows is the first of each type
    about = {"type": "tabular", "name": data["name"], "split": "test"}
    return {"task": _TASK, "dataset": about, "metrics": metrics}


def _chosen(run: Run) -> Mapping[str, Any]:
    return run.described["points"][run.described["chosen"]]


def _use(run: Run) -> list[str]:
    record = run.record
    negative, positive = (f"“{in_markdown(word)}”" for word in record["words"])
    favorable = in_markdown(record["data"]["favorable"])
    features = ", ".join(in_markdown(name) for name in record["features"])
    signed = run.decision if run.folder is not None else None
    lines = [
        f"It decides between {negative} and {positive} (column "
        f"{in_markdown(record['data']['label'])}); “{favorable}” is the favorable outcome.",
        f"It decides by: {features}.",
        f"Who decides what by it, and about whom: {_UNKNOWN}",
        f"What it must not be used for: {_UNKNOWN}",
    ]
    if signed is not None:
        chosen = run.described["chosen"]
        other = f" The figures below are of point {chosen}." if signed["point"] != chosen else ""
        lines.append(
            f"Point {signed['point']} was signed by {in_markdown(signed['name'])} on "
            f"{in_markdown(signed['date'])}: {in_markdown(signed['reason'])}{other}"
        )
    return lines


def _data(run: Run) -> list[str]:
    data = run.record["data"]
    dropped = [f"{n:,} {in_markdown(why)}" for why, n in data["dropped"].items()]
    return [
        f"{in_markdown(data['description'])}, sha256 `{data['sha256']}`.",
        f"{data['rows']:,} rows: {data['fit_rows']:,} to train and choose, "
        f"{data['test_rows']:,} to test.",
        f"{100 * data['base_rate']:.1f}% have the label “{in_markdown(data['positive'])}”.",
        *([f"Rows left out: {', '.join(dropped)}."] if dropped else []),
        f"Where the rows come from, and how they were labelled: {_UNKNOWN}",
    ]


def _groups(run: Run) -> list[str]:
    groups, settings = run.record["data"]["groups"], run.record["settings"]
    levels = [f"{in_markdown(name)} ({n} values)" for name, n in groups["levels"].items()]
    inputs = "are" if settings["include_sensitive"] else "are not"
    return [
        f"Sensitive attributes: {', '.join(levels)}; their crossing has {groups['groups']:,} "
        "groups.",
        f"The smallest is {in_markdown(groups['smallest'])} with {groups['smallest_rows']:,} rows.",
        f"They {inputs} inputs of the model.",
    ]


def _evaluation(run: Run) -> str:
    point, constant = _chosen(run), run.described["constant"]
    said = (
        f"Point {run.described['chosen']} of {len(run.described['points'])}, measured on "
        f"{run.described['rows']:,} test rows that had no part in training or choice: it is wrong "
        f"for {100 * point['error']:.1f}% of them (95% interval "
        f"{100 * point['error_lower']:.1f}% to {100 * point['error_upper']:.1f}%)"
    )
    if constant is not None:
        same = f"{in_markdown(constant['text'])} is wrong for {100 * constant['error']:.1f}%"
        said += f"; {same}"
    return f"{said}."


def _limits(run: Run) -> list[str]:
    settings = run.record["settings"]
    found = [in_markdown(str(caveat)) for caveat in run.caveats]
    if settings["group_thresholds"]:
        found.append(
            "People with the same inputs are treated differently by their group, which may be "
            "unlawful where it is used."
        )
    elif settings["search"] != "inprocess":
        found.append("It decides by a guess of the group, made from the other inputs.")
    return [
        *found,
        "Intervals and verdicts hold for people drawn as the test rows were, and say nothing of "
        "others.",
        "A gap within the limit is not a proof of fairness: labels may be unfair themselves, and "
        "groups that the data do not name are not measured.",
    ]


def _made(run: Run) -> list[str]:
    record = run.record
    given = record["settings"].items()
    settings = {k: v for k, v in given if v is not None and v is not False and v not in ([], {})}
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    return [
        f"By APFEx (arXiv 2509.13908), {in_markdown(record['created'])}, run `{run_id(record)}`; "
        "`apfex rerun` with its `run.json` repeats it.",
        f"Settings: {in_markdown(json.dumps(settings, ensure_ascii=False))}",
        f"Versions: {in_markdown(versions)}",
    ]


def _section(title: str, lines: Sequence[str], between: str = "\n") -> str:
    marked = lines if between == "\n\n" else [f"- {line}" for line in lines]
    return f"## {title}\n\n{between.join(marked)}"


_USAGE = """```python
from apfex.runs import load_run

run = load_run("FOLDER")
run.predict("new.csv")  # decisions, calibrated probabilities and margins
```"""

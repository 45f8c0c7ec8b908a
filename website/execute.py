"""Execute the tutorials: every ``docs/tutorials/NAME.py`` becomes ``NAME.ipynb`` with its outputs.

A tutorial is a script in the percent format that editors know: ``# %% [markdown]`` begins a cell of
text, ``# %%`` one of code, and ``# %% alt="..."`` one whose picture needs words. ``python
website/execute.py adult trees`` takes only these; ``--words`` runs nothing and keeps the outputs,
where only text has changed since.
"""

import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

TUTORIALS = Path(__file__).parents[1] / "docs" / "tutorials"
START = re.compile(r'^# %%(?P<text> \[markdown\])?(?: alt="(?P<alt>[^"]*)")?$', flags=re.M)
KERNEL_FILE = re.compile(r"\S*ipykernel_\d+/\d+\.py:\d+: ")
"""The made-up file that a warning says it comes from."""
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def read_script(text: str) -> NotebookNode:
    """The notebook of a script, without outputs."""
    starts = list(START.finditer(text))
    ends = [start.start() for start in starts[1:]] + [len(text)]
    cells = []
    for place, (start, end) in enumerate(zip(starts, ends, strict=True)):
        source = text[start.end() : end].strip()
        if start["text"]:
            source = re.sub(r"^# ?", "", source, flags=re.M)
            cells.append(new_markdown_cell(source, id=f"cell-{place}"))
        else:
            metadata = {"alt": start["alt"]} if start["alt"] else {}
            cells.append(new_code_cell(source, id=f"cell-{place}", metadata=metadata))
    return new_notebook(cells=cells, metadata=METADATA)


def execute(notebook: NotebookNode, folder: Path, timeout: int = 900) -> NotebookNode:
    """Run all cells in a kernel of their own, whose working directory is ``folder``."""
    where = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=timeout, resources=where).execute()
    notebook.metadata.update(METADATA)  # the kernel has put its version in
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # when it ran: another run is no other notebook
        for output in cell.get("outputs", []):
            if "text" in output:
                output["text"] = KERNEL_FILE.sub("", output["text"])
            if len(output.get("data", {})) > 1:
                output["data"].pop("text/plain", None)
    return notebook


def same_code(one: NotebookNode, other: NotebookNode) -> bool:
    """Whether two notebooks run the same."""
    return [cell.source for cell in code_cells(one)] == [cell.source for cell in code_cells(other)]


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """The cells that run, in order."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def keep_outputs(new: NotebookNode, old: NotebookNode) -> NotebookNode:
    """Hand the outputs of a notebook to one that runs the same and says something else."""
    if not same_code(new, old):
        raise SystemExit("The code has changed, too: execute it without --words.")
    for cell, before in zip(code_cells(new), code_cells(old), strict=True):
        cell.outputs, cell.execution_count = before.outputs, before.execution_count
    return new


def main(arguments: list[str]) -> None:
    """Execute the tutorials that are named, or all."""
    names = [name for name in arguments if name != "--words"]
    for script in sorted(TUTORIALS.glob("*.py")):
        if names and script.stem not in names:
            continue
        place = script.with_suffix(".ipynb")
        notebook = read_script(script.read_text(encoding="utf-8"))
        if "--words" in arguments:
            keep_outputs(notebook, nbformat.read(place, as_version=4))
        else:
            with TemporaryDirectory() as folder:
                execute(notebook, Path(folder))
        nbformat.write(notebook, place)
        print(script.stem)


if __name__ == "__main__":
    main(sys.argv[1:])

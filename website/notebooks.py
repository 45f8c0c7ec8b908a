"""Executed notebooks become pages: what they say, what they run, and what came out."""

import base64
import re
from pathlib import Path
from typing import Any

import nbformat
from mkdocs.structure.files import File, Files

SHOWN = ("image/png", "text/html", "text/markdown", "text/plain")
"""Of what a cell hands out in several forms the first of these is shown."""


def on_files(files: Files, config: Any) -> Files:
    """Add a page, and its pictures, for each notebook."""
    for file in [file for file in files if file.src_uri.endswith(".ipynb")]:
        name = Path(file.src_uri).stem
        pictures: dict[str, bytes] = {}
        page = as_markdown(nbformat.read(file.abs_src_path or "", as_version=4), name, pictures)
        files.append(File.generated(config, f"tutorials/{name}.md", content=page))
        for picture, content in pictures.items():
            files.append(File.generated(config, f"tutorials/{picture}", content=content))
    return files


def as_markdown(notebook: Any, name: str, pictures: dict[str, bytes]) -> str:
    """A notebook as one page; ``pictures`` takes up its images."""
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        alt = cell.metadata.get("alt", "")
        parts += [_shown(output, alt, name, pictures) for output in cell.outputs]
    title, *rest = parts
    note = f'*This page is an executed notebook: <a href="{name}.ipynb" download>download it</a>.*'
    first, _, more = title.partition("\n")
    return "\n\n".join([first, note, more, *rest])


def _shown(output: Any, alt: str, name: str, pictures: dict[str, bytes]) -> str:
    if output.output_type == "stream":
        return f"```{{.text .output}}\n{output.text.rstrip()}\n```"
    kind = next(kind for kind in SHOWN if kind in output.data)
    content = output.data[kind]
    if kind == "image/png":
        place = f"{name}-{len(pictures)}.png"
        pictures[place] = base64.b64decode(content)
        return f"![{alt}]({place}){{ .output }}"
    if kind == "text/html":
        plain = re.sub(r"<style scoped>.*?</style>", "", content, flags=re.DOTALL)
        plain = plain.replace('<table border="1"', "<table")  # the site draws its own lines
        return f'<div class="output" role="region" tabindex="0">{plain}</div>'
    return content if kind == "text/markdown" else f"```{{.text .output}}\n{content.rstrip()}\n```"

"""The page about the report runs as printed."""

from tests.test_readme import run_page


def test_report_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run_page("docs/report.md")
    assert names["described"]["kind"] == "apfex.front"
    assert {path.name for path in tmp_path.iterdir()} == {"report.html", "audit.html"}

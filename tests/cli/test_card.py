"""``apfex card``: the model card of a run, on stdout or in a file."""

import json

from huggingface_hub import ModelCard

from apfex.runs import load_run


def test_it_is_written_where_asked_and_nothing_is_replaced(apfex, finished, tmp_path):
    wanted = load_run(finished).model_card(license="mit")
    printed = apfex("card", finished, "--license", "mit")
    assert (printed.code, printed.out) == (0, wanted)
    file = tmp_path / "README.md"
    assert apfex("card", finished, "--out", file).code == 0
    assert ModelCard.load(file).data.to_dict()["library_name"] == "apfex"
    refused = apfex("card", finished, "--out", file)
    assert refused.code == 2
    assert "--force replaces it" in refused.err
    assert apfex("card", finished, "--out", file, "--license", "mit", "--force").code == 0
    assert file.read_text() == wanted


def test_json_has_the_text(apfex, finished):
    document = json.loads(apfex("card", finished, "--json").out)
    assert document["card"] == load_run(finished).model_card()


def test_an_audit_has_none(apfex, decisions, tmp_path):
    apfex("audit", decisions, "--prediction", "approved", "--positive", "yes",
          "--sensitive", "sex", "--out", tmp_path / "audited")  # fmt: skip
    found = apfex("card", tmp_path / "audited")
    assert found.code == 2
    assert "audit" in found.err

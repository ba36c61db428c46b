"""The 95 real tables on which nothing was decided."""

import json
import sys

import pandas as pd
import unseen_tables
from unseen_tables import half_of, unseen_specs


def test_an_unknown_table_is_refused(tmp_path, refused):
    said = refused("unseen_tables", "--out", tmp_path, "--tables", "wdbc")
    assert "there is no table 'wdbc'; there are credit_card" in said


def test_no_data_set_is_taken_twice_and_none_that_was_looked_at_before():
    items = [spec["from"] for spec in unseen_specs().values()]
    assert len(items) == len(set(items)) == 95
    # What the development tables were made of, and other versions of them and of the benchmark's.
    seen = """psych/bfi carData/Chile ISLR/College MASS/crabs openintro/email openintro/email_test
        Ecdat/Fair AER/Affairs MASS/fgl DAAG/headInjury carData/Mroz Ecdat/Mroz AER/PSID1976
        causaldata/Mroz sampleSelection/Mroz87 wooldridge/mroz survival/pbc survival/pbcseq
        rpart/solder survival/solder MASS/Pima.tr MASS/Pima.te MASS/Pima.tr2 dslabs/brca DAAG/spam7
        wooldridge/affairs COUNT/affairs"""
    assert not set(items) & set(seen.split())


def test_halves_stay_what_they_are(tmp_path, monkeypatch):
    choosing = [name for name in unseen_specs() if half_of(name) == "choosing"]
    assert len(choosing) == 43
    assert choosing[:4] == ["hmda", "health_insurance", "resumes", "salaries"]
    frame = pd.DataFrame({"a": range(8), "seen": [0, 1] * 4})
    spec = {"from": "p/i", "title": "T", "target": "seen"}
    monkeypatch.setattr(unseen_tables, "check_package", lambda package: None)
    monkeypatch.setattr(unseen_tables, "r_table", lambda item: frame)
    monkeypatch.setattr(unseen_tables, "unseen_specs", lambda: {"hmda": spec, "nmes": spec})
    for half, name in (("choosing", "hmda"), ("unseen", "nmes")):
        monkeypatch.setattr(sys, "argv", ["u", "--out", str(tmp_path / half), "--half", half])
        unseen_tables.main()
        assert list(json.loads((tmp_path / half / "index.json").read_text())) == [name]

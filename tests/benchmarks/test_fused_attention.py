"""`benchmarks/fused_attention.py` compares ways only where they differ."""

import fused_attention


def test_without_machine_code_nothing_is_measured_under_its_name(monkeypatch, capsys):
    monkeypatch.setattr(fused_attention, "has_machine_code", lambda: False)
    monkeypatch.setattr("sys.argv", ["fused_attention.py"])
    fused_attention.main()
    assert capsys.readouterr().out.startswith("this processor has no machine code to compare")

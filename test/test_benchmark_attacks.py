"""The table of attacks: rows are replaced by kind."""

from __future__ import annotations

from pathlib import Path

from benchmark.attacks.page import note


def test_a_row_is_replaced_by_one_of_its_kind_and_others_stay(tmp_path: Path) -> None:
    page = tmp_path / "results.md"
    page.write_text("before\n<!-- begin attacks -->\n<!-- end attacks -->\nafter\n")
    note("`model`", 10, 1, "9 refused, 1 wrong", 1, page)
    note("kills", 5, 2, "none", 0, page)
    note("`model`", 20, 3, "20 refused", 0, page)
    text = page.read_text()
    assert "9 refused" not in text
    assert text.count("`model`") == 1
    assert "| `model` | 20 | 3 | 20 refused | 0 |" in text
    assert text.startswith("before") and text.endswith("after\n") and "| kills | 5 | 2 | none | 0 |" in text

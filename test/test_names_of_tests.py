"""Files of tests have names of their own: pytest refuses to collect two of one name, once both are run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path


def test_no_two_files_of_tests_have_one_name() -> None:
    names = Counter(path.name for path in Path(__file__).parent.rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []

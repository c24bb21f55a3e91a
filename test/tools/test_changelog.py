"""CHANGELOG.rst is what CHANGELOG.md says, as the tools of a ROS release read it."""

from __future__ import annotations

import docutils.core
import pytest
from catkin_pkg.changelog import get_changelog_from_path
from catkin_pkg.package_version import get_forthcoming_label

import lift_ros
from tools.changelog import PAGE, ROOT, SOURCE, as_rst


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == as_rst(SOURCE.read_text(encoding="utf-8")), "run `make format`"


def test_release_tools_find_the_version_of_the_package_and_what_is_to_come() -> None:
    changelog = get_changelog_from_path(str(ROOT), "lift_ros")
    versions = [version for version, _, _ in changelog.foreach_version()]
    assert versions[0] == lift_ros.__version__
    assert get_forthcoming_label(changelog.rst) == "Forthcoming"


def test_the_page_has_no_faults_of_markup() -> None:
    docutils.core.publish_string(
        PAGE.read_text(encoding="utf-8"), writer="null", settings_overrides={"halt_level": 2, "report_level": 5}
    )


def test_headings_lists_links_and_code_are_translated() -> None:
    text = "# Changelog\n\n## 1.1.0 (unreleased)\nNew\n- `a\n  b` of [page](p.md)\n\n## 1.0.0 (2026-01-31)\n- first\n"
    assert as_rst(text).splitlines()[3:] == [
        "",
        "Forthcoming",
        "-----------",
        "New",
        "",
        "- ``a",
        "  b`` of `page <p.md>`__",
        "",
        "1.0.0 (2026-01-31)",
        "------------------",
        "- first",
    ]


def test_heading_without_a_date_is_refused() -> None:
    with pytest.raises(ValueError, match="allowed: ## 1.2.3"):
        as_rst("## 1.0\n- first\n")

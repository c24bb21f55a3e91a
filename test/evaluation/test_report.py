"""The report is one page that needs nothing else, and says what the episodes say."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser
from pathlib import Path

import cv2
import numpy as np
import pytest
from report_samples import make_episode

from lift_ros.collection.records import Mode, Outcome, Source
from lift_ros.errors import UserError
from lift_ros.evaluation.frames import Frame, Strip
from lift_ros.evaluation.phases import Phase
from lift_ros.evaluation.report import ReportContent, text_table, write_report
from lift_ros.evaluation.scores import Scores

PICTURE = np.zeros((8, 8, 3), np.uint8)


@pytest.fixture(scope="module")
def content() -> ReportContent:
    return ReportContent(
        title="Fetch <reach>",
        episodes=[
            make_episode(40, Mode.COLLECT, Source.LOGGING_POLICY),
            make_episode(10, Mode.COLLECT, Source.AUGMENTOR),
            make_episode(5, Mode.EVALUATE, Source.AUGMENTOR),
        ],
        threshold=0.05,
        scores={Phase.LOGGING_POLICY: Scores(-9.0, 0.5, 12, 1.0, 7, 1.0)},
        strips=[
            Strip(Phase.LOGGING_POLICY, 0, 40, [Frame(0, np.zeros((8, 8), np.float32), 1.4)]),
            Strip(Phase.LEARNED_POLICY, 2, 5, [Frame(0, PICTURE, 1.4), Frame(5, PICTURE, 0.0)], rendered=True),
        ],
        parameters={"seed": 7, "note": "<script>"},
        commands=["lift demo --seed 7"],
    )


@pytest.fixture(scope="module")
def page(content: ReportContent, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("report") / "new" / "report.html"
    write_report(content, path)
    return path.read_text()


def test_the_page_refers_to_nothing_outside_itself(page: str) -> None:
    references = re.findall(r'(?:src|srcset|href)="([^"]{1,40})', page)
    assert len(references) == 12  # each figure for light and for dark pages
    assert all(reference.startswith("data:image/png;base64,") for reference in references)
    assert "http" not in re.sub(r"base64,[^\"]*", "", page)


def test_all_figures_are_there(page: str) -> None:
    titles = re.findall(r"<h2>([^<]+)</h2><figure>", page)
    assert titles == [
        "Convergence",
        "Trajectories",
        "Steps per episode",
        "Augmentations",
        "What was seen: logging policy",
        "The learned policy at work",
    ]


def test_text_is_escaped(page: str) -> None:
    assert "<script>" not in page
    assert "Fetch &lt;reach&gt;" in page


def test_parameters_and_commands_are_there(page: str) -> None:
    assert '"seed": 7' in page.replace("&quot;", '"')
    assert "lift demo --seed 7" in page


def test_the_table_has_a_row_per_phase(page: str) -> None:
    rows = re.findall(r"<tr><td>([^<]+)</td><td>1</td><td>([^<]+)</td><td>100%</td>", page)
    assert rows == [("logging policy", "40.0"), ("LIFT collection", "10.0"), ("learned policy", "5.0")]


def test_shadow_episodes_have_a_row_of_their_own_and_are_no_lift_collection(tmp_path: Path) -> None:
    shadow = ReportContent("walk", [make_episode(20, Mode.SHADOW, Source.LOGGING_POLICY)], threshold=0.05)
    write_report(shadow, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "<tr><td>shadow</td><td>1</td><td>20.0</td>" in page
    assert "LIFT collection" not in page and "Augmentations" not in page


def test_assist_has_a_row_of_its_own(tmp_path: Path) -> None:
    content = ReportContent("walk", [make_episode(7, Mode.ASSIST, Source.AUGMENTOR)], threshold=0.05)
    write_report(content, tmp_path / "report.html")
    assert "<tr><td>assist</td><td>1</td><td>7.0</td>" in (tmp_path / "report.html").read_text()


def test_every_figure_comes_for_light_and_dark_pages(page: str) -> None:
    pairs = re.findall(r'prefers-color-scheme: dark\)" srcset="([^"]+)"><img alt="[^"]+" src="([^"]+)"', page)
    assert len(pairs) == 6 and all(dark != light for dark, light in pairs)
    corners = [[cv2.imdecode(png_of(uri), cv2.IMREAD_GRAYSCALE)[0, 0] for uri in pair] for pair in pairs]
    assert all(dark < 40 and light > 240 for dark, light in corners)
    assert "@media (prefers-color-scheme: dark)" in page


def png_of(uri: str) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.frombuffer(base64.b64decode(uri.partition(",")[2]), np.uint8)


def test_what_nobody_can_know_is_left_out_with_a_sentence(tmp_path: Path) -> None:
    lost = make_episode(6, Mode.COLLECT, Source.LOGGING_POLICY)
    lost.outcome, lost.goal = Outcome.STEP_LIMIT, np.empty(0)
    for step in lost.steps:
        step.reward = float("nan")
    write_report(ReportContent("walk", [lost]), tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "<h2>Convergence</h2><p class=lead>Not shown: no episode tells its distance to the goal." in page
    assert "nan" not in re.sub(r"base64,[^\"]*", "", page)
    assert "The position of up to 12 episodes each in axis 1 and axis 2." in page  # no goal, so no offset from it


def test_a_place_that_cannot_be_written_is_an_error_of_one_sentence(content: ReportContent, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    alone = ReportContent("walk", content.episodes[:1])
    with pytest.raises(UserError, match="cannot write .*report.html: .*; choose a place"):
        write_report(alone, tmp_path / "file" / "report.html")


def test_dataset_scores_stand_in_a_table(page: str) -> None:
    assert "<tr><td>logging policy</td><td>0.500</td><td>1.000</td><td>12</td></tr>" in page


def test_every_tag_is_closed(page: str) -> None:
    class Balance(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.open: list[str] = []

        def handle_starttag(self, tag: str, attrs: object) -> None:
            if tag not in ("meta", "img", "source"):
                self.open.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert self.open.pop() == tag

    parser = Balance()
    parser.feed(page)
    assert parser.open == []


def test_a_run_of_the_routine_alone_gets_a_report_too(content: ReportContent, tmp_path: Path) -> None:
    alone = ReportContent("walk", content.episodes[:1], threshold=0.05)
    write_report(alone, tmp_path / "report.html")
    assert "Augmentations" not in (tmp_path / "report.html").read_text()


def test_the_terminal_table_is_aligned(content: ReportContent) -> None:
    lines = text_table(content.episodes).splitlines()
    assert len(lines) == 5
    assert len({len(line) for line in lines}) == 1
    assert lines[2].startswith("logging policy")

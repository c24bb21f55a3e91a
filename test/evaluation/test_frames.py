"""Pictures along episodes: the right ones are chosen, and every encoding is shown as it is meant."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from report_samples import assert_inside
from sample_run import drive, write_run

from lift_ros.bags import RunReader
from lift_ros.collection.records import Mode, Outcome, same
from lift_ros.evaluation.frames import (
    SHOWN,
    Frame,
    PictureSummary,
    Strip,
    as_shown,
    choose_episodes,
    draw_strip,
    make_strip,
    note_pictures,
    recorded_strips,
    summarise_pictures,
)
from lift_ros.evaluation.labelled import label_episodes
from lift_ros.evaluation.phases import Phase
from lift_ros.evaluation.report import collect_content
from lift_ros.evaluation.report_figures import frame_strip
from lift_ros.positioning.pictures import ENCODINGS, PictureFormat


def test_bytes_are_shown_as_they_are() -> None:
    (shown,) = as_shown([np.array([[0, 51, 255]], np.uint8)])
    assert np.allclose(shown, [[0, 0.2, 1]])


def test_zero_of_floats_is_mid_grey_on_one_scale_for_all() -> None:
    first, second = as_shown([np.array([[0.0, 1.0]], np.float32), np.array([[0.0, -4.0]], np.float32)])
    assert np.allclose(first, [[0.5, 0.625]])
    assert np.allclose(second, [[0.5, 0.0]])
    assert np.allclose(as_shown([np.zeros((2, 2), np.float32)]), 0.5)


def test_the_largest_value_of_sixteen_bits_is_white() -> None:
    first, second = as_shown([np.array([[0, 1000]], np.uint16), np.array([[4000, 2000]], np.uint16)])
    assert np.allclose(first, [[0, 0.25]])
    assert np.allclose(second, [[1, 0.5]])
    assert np.allclose(as_shown([np.zeros((2, 2), np.uint16)]), 0.0)


def test_one_episode_of_the_routine_and_one_of_who_came_after_it_are_chosen() -> None:
    routine = [drive(0, 20), drive(1, 8), drive(2, 10), drive(3, 90, outcome=Outcome.ABORTED)]
    lifted = drive(4, 5, augmented=2)
    evaluated = replace(drive(5, 3, augmented=3), mode=Mode.EVALUATE)
    assert [(phase, episode.index) for phase, episode in choose_episodes([*routine, lifted])] == [
        (Phase.LOGGING_POLICY, 2),
        (Phase.LIFT_COLLECTION, 4),
    ]
    assert [episode.index for _, episode in choose_episodes([*routine, lifted, evaluated])] == [2, 5]
    assert [episode.index for _, episode in choose_episodes([lifted])] == [4]
    assert choose_episodes([drive(0, 0, outcome=Outcome.ABORTED)]) == []


def test_frames_go_from_the_first_to_the_last_with_step_and_distance(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [drive(0, 20, pictures=True), drive(1, 3, augmented=2, pictures=True)])
    reader = RunReader(run)
    long, short = recorded_strips(reader, label_episodes(reader).pictured)
    assert [frame.step for frame in long.frames] == [0, 4, 8, 12, 16, 20]
    assert [frame.step for frame in short.frames] == [0, 1, 2, 3]
    assert [frame.distance for frame in short.frames] == pytest.approx([2**0.5, 2**0.5 / 1.5, 2**0.5 / 3, 0])
    for frame in long.frames:
        assert same(frame.picture, np.full((4, 6, 3), 10 * frame.step, np.uint8))
    assert (long.phase, short.phase) == (Phase.LOGGING_POLICY, Phase.LIFT_COLLECTION)


def test_pictures_are_counted_and_let_go(tmp_path: Path) -> None:
    blind = drive(1, 5)
    half = drive(2, 5, pictures=True)
    half.steps[3].image = None
    found = label_episodes([drive(0, 5, pictures=True), blind, half])
    assert found.pictures == {PictureFormat(4, 6, "rgb8"): 11}
    assert [episode.index for episode in found.pictured] == [0]
    assert all(step.image is None for episode in found.episodes for step in episode.steps)
    summary = PictureSummary("6×4 rgb8", 11, 11 * 72)
    assert summarise_pictures(found.pictures) == [summary]
    assert str(summary) == "11 of 6×4 rgb8, 0.072 kB each, 0.000792 MB"


def test_a_recovered_episode_is_shown_up_to_what_was_seen(tmp_path: Path) -> None:
    cut = replace(
        drive(0, 5, pictures=True, outcome=Outcome.RECOVERED),
        final_observation=np.empty(0),
        final_position=np.empty(0),
        final_image=None,
    )
    assert note_pictures(cut, Counter())
    reader = RunReader(write_run(tmp_path / "run", [cut]))
    (strip,) = recorded_strips(reader, label_episodes(reader).pictured)
    assert [frame.step for frame in strip.frames] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("size", [(6, 6), (4, 40), (40, 4)])
def test_words_stay_inside_whatever_the_pictures_are(encoding: str, size: tuple[int, int]) -> None:
    kind = PictureFormat(*size, encoding)
    picture = np.linspace(0, 200, int(np.prod(kind.shape))).reshape(kind.shape).astype(kind.dtype)
    frames = [Frame(1000 * number, picture, 0.0123456) for number in range(SHOWN)]
    figure = draw_strip(Strip(Phase.LOGGING_POLICY, 3, 5000, frames), "mm", "runs/lens, logging policy: episode 3")
    assert_inside(figure)
    assert [axes.get_title() for axes in figure.axes][1] == "step 1000\n0.0123 mm"


def test_an_unknown_distance_is_left_out() -> None:
    figure = draw_strip(Strip(Phase.LOGGING_POLICY, 0, 1, [Frame(0, np.zeros((4, 4), np.uint8))]))
    assert figure.axes[0].get_title() == "step 0"


def test_captions_say_what_grey_means_and_whether_it_was_recorded() -> None:
    floats = make_strip(Phase.LOGGING_POLICY, drive(0, 1), {0: np.zeros((4, 4), np.float32)})
    assert "32FC1" in frame_strip(floats).caption and "Mid grey is 0" in frame_strip(floats).caption
    rendered = replace(floats, rendered=True)
    assert "rendered afterwards" in frame_strip(rendered).caption


def test_the_report_shows_each_phase_once(tmp_path: Path) -> None:
    first = write_run(tmp_path / "first", [drive(0, 6, pictures=True)])
    second = write_run(tmp_path / "second", [drive(0, 4, pictures=True), drive(1, 3, augmented=2, pictures=True)])
    strips = collect_content([first, second]).strips
    assert [(strip.phase, strip.steps) for strip in strips] == [(Phase.LOGGING_POLICY, 6), (Phase.LIFT_COLLECTION, 3)]
    assert collect_content([write_run(tmp_path / "blind", [drive(0, 6)])]).strips == []

"""What the operator's page is told and shows, without a browser: trails, tables, states and refusals."""

from __future__ import annotations

import numpy as np
import pytest

from lift_ros.collection.records import Episode, Mode, Outcome, Source, Step
from lift_ros.evaluation.phases import Phase
from lift_ros.graph.live_view import RunStatus
from lift_ros.graph.run_watch import Report
from lift_ros.messages.records import EpisodeEnd
from lift_ros.page.live import EpisodeRow, LiveRun, PlantWords
from lift_ros.page.pictures import data_url
from lift_ros.scenario import load_scenario

pytest.importorskip("nicegui", reason="pip install 'lift_ros[page]'")
from lift_ros.page import operator_page as page
from lift_ros.page.layout import html_table
from lift_ros.page.rows import table_row


def step(episode: int, index: int, position: list[float], source: Source = Source.LOGGING_POLICY) -> Step:
    return Step(episode, index, 0, np.array([7.0]), np.array([0.1, 0.2]), source, np.array(position), reward=-0.25)


def end(index: int, mode: Mode = Mode.COLLECT, augmentations: int = 0) -> EpisodeEnd:
    episode = Episode(index, 0, mode, Outcome.ABORTED, [], np.zeros(1), "why", start_time_ns=0, end_time_ns=2 * 10**9)
    return EpisodeEnd(episode, 12, augmentations, 0.0)


def live(**reports: Report) -> LiveRun:
    run = LiveRun(PlantWords.of(load_scenario("fetch-reach")), "runs/one")
    run.heard(RunStatus(), reports)
    return run


def report(status: str, *, is_well: bool = True, **values: str) -> Report:
    return Report(is_well, status, {"status": status, **values})


def test_words_are_the_scenarios() -> None:
    words = PlantWords.of(load_scenario("fetch-reach"))
    assert (words.axis(0), words.distance) == ("axis 1 [m]", "distance to the goal [m]")
    assert PlantWords.of(load_scenario("micromanager-beads")).reading(5) == "reading 6"


def test_trail_is_that_of_the_episode_under_way() -> None:
    run = live()
    run.step_made(step(0, 0, [1.0, 1.0]))
    run.step_made(step(1, 0, [2.0, 2.0]))
    run.step_made(step(1, 1, [3.0, 2.0], Source.AUGMENTOR))
    trail = run.trail()
    assert (trail.episode, trail.known) == (1, True)
    assert [(point.place, point.distance) for point in trail.points] == [((2.0, 2.0), 0.25), ((3.0, 2.0), 0.25)]
    assert run.versions["trail"] == 3


def test_moves_are_added_up_where_nobody_knows_the_position() -> None:
    run = live()
    for index in range(3):
        run.step_made(step(0, index, []))
    assert not run.trail().known
    assert [point.place for point in run.trail().points] == [(0.0, 0.0), (0.1, 0.2), (0.2, 0.4)]


def test_rows_tell_who_acted_and_why_an_episode_ended() -> None:
    run = live()
    run.episode_ended(end(1, augmentations=3))
    run.add_rows([EpisodeRow.of(end(0))])
    run.episode_ended(end(2, Mode.EVALUATE))
    assert [row.phase for row in run.rows()] == [Phase.LOGGING_POLICY, Phase.LIFT_COLLECTION, Phase.LEARNED_POLICY]
    shown = table_row(run.rows()[1])
    assert (shown["outcome"], shown["augmented"], shown["seconds"]) == ("aborted: why", 3, "2.00")


@pytest.mark.parametrize(
    ("arbiter", "plant", "state"),
    [
        (report("RUNNING"), report("MOVING"), ("running", "good")),
        (report("PAUSED", is_well=False), report("HELD"), ("paused", "warn")),
        (report("PAUSED", is_well=False), report("EMERGENCY_STOP", is_well=False), ("emergency stop", "bad")),
        (report("RUNNING"), report("FAULT", is_well=False), ("fault", "bad")),
    ],
)
def test_state_is_one_word_and_the_worst_counts(arbiter: Report, plant: Report, state: tuple[str, str]) -> None:
    run = live(my_stage=plant, arbiter=arbiter, recorder=report("RECORDING"))
    assert page.plant_of(run) == "my_stage"
    assert page.state_of(run) == state
    run.end()
    assert page.state_of(run) == ("ended", "warn")
    assert "has ended" in page.trouble_of(run)


def test_a_graph_without_an_arbiter_says_so() -> None:
    assert page.state_of(live())[0] == "waiting for the arbiter"


def test_modes_that_the_graph_cannot_do_are_refused() -> None:
    run = live(logging_policy=report("SERVING"))
    assert page.refusal_of_mode(run, "collect") == ""
    assert page.refusal_of_mode(run, "assist") == "Mode assist needs the augmentor, which this graph does not have."
    assert page.refusal_of_mode(live(augmentor=report("SERVING")), "evaluate") == ""
    assert page.MODES.keys() == {mode.name.lower() for mode in Mode}


def test_latencies_are_the_arbiters() -> None:
    values = {"plant p50 [ms]": "0.5", "plant p99 [ms]": "2.0", "plant max [ms]": "9.0", "steps": "7"}
    assert page.latencies_of(live(arbiter=Report(True, "", values))) == [("plant", "0.5", "2.0")]


def test_what_nodes_say_is_no_html() -> None:
    table = html_table(("node",), [("<script>alert(1)</script>",)], ["lift-bad"])
    assert "<script>" not in table
    assert "&lt;script&gt;" in table


def test_means_are_compared_only_where_there_are_both() -> None:
    alone = EpisodeRow(0, Phase.LOGGING_POLICY, Outcome.REACHED, 50, 0, 1.0)
    lifted = EpisodeRow(1, Phase.LIFT_COLLECTION, Outcome.REACHED, 30, 5, 1.0)
    assert "<b>-40%</b>" in page.means([alone, lifted])
    assert "%" not in page.means([alone])


@pytest.mark.parametrize(
    ("picture", "kind"),
    [
        (np.zeros((8, 9), np.uint8), "png"),
        (np.zeros((8, 9, 3), np.uint16), "png"),
        (np.full((8, 9), -1.0, np.float32), "png"),
        (np.zeros((400, 300, 3), np.uint8), "jpeg"),
    ],
)
def test_pictures_of_every_kind_are_shown(picture: np.ndarray, kind: str) -> None:
    assert data_url(picture).startswith(f"data:image/{kind};base64,")


@pytest.mark.parametrize(("rate", "pause"), [(0.0, 0.0), (100.0, 0.0), (1500.0, page.QUICK_PAUSE)])
def test_a_loop_that_is_quicker_than_eyes_is_drawn_less_often(rate: float, pause: float) -> None:
    run = live()
    run.status.steps_per_second = rate
    assert page.drawing_pause(run) == pause

"""The operator's page as a person uses it: a real browser, a real graph, and what every control does to it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from browser import Browser, browser, require_browser
from live_graph import LiveGraph, live_graph, write_model

pytest.importorskip("nicegui", reason="pip install 'lift_ros[page]'")
require_browser()

PLANT = "positioning_simulator"
ESCAPE = "\ue00c"
SPACE = " "
MARK = {"graph": "tested"}  # as `lift run` marks its nodes, so that they heed no others


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveGraph]:
    """A graph without end, whose plant has a camera, with its page."""
    with live_graph(tmp_path_factory.mktemp("page")) as graph:
        run = str(graph.folder / "run")
        (graph.folder / "models").mkdir()
        scenario = {"scenario": "light-tunnel", **MARK}
        patient = {"logging_policy_deadline": 30.0, "plant_deadline": 30.0, "augmentor_deadline": 30.0}
        graph.start(PLANT, step_time=0.05, **scenario)
        graph.start("logging_policy", **scenario)
        graph.start("augmentor", model_folders=str(graph.folder / "models"), **scenario)
        graph.start("recorder", run=run, **MARK)
        graph.start("arbiter", p=0.5, guard_enabled=False, **scenario, **patient)
        start_page(graph)
        graph.wait_for_steps()
        yield graph


def start_page(graph: LiveGraph) -> None:
    """Start the page's process, at a free port and after that always at the same."""
    folder = {"run": str(graph.folder / "run"), "model_folders": str(graph.folder / "models")}
    address = url_of(graph)[7:-1] or "127.0.0.1:0"
    graph.start("page", scenario="light-tunnel", address=address, **folder, **MARK)
    starts = len(urls_of(graph))
    graph.wait("the page", lambda: len(urls_of(graph)) > starts)


def urls_of(graph: LiveGraph) -> list[str]:
    """Return where the page was at each of its starts."""
    log = graph.folder / "page.log"
    return re.findall(r"the page is at (http\S+)", log.read_text()) if log.exists() else []


def url_of(graph: LiveGraph) -> str:
    return (urls_of(graph) or [""])[-1]


@pytest.fixture(scope="module")
def window(graph: LiveGraph) -> Iterator[Browser]:
    """An open page."""
    with browser() as window:
        window.open(url_of(graph))
        yield window


def step_of(window: Browser) -> tuple[int, int]:
    episode, step = (window.text(name) for name in ("episode", "step"))
    return (int(episode), int(step)) if step.isdecimal() else (-1, -1)  # nothing was heard yet


def wait_for_news(window: Browser) -> None:
    before = step_of(window)
    window.wait("another step", lambda: step_of(window) != before)


def test_it_loads_from_this_machine_alone_and_follows_the_graph(graph: LiveGraph, window: Browser) -> None:
    wait_for_news(window)
    window.wait("the state", lambda: window.text("state") == "running")
    assert window.hosts() == {url_of(graph)[7:-1]}
    assert "light-tunnel" in window.driver.title
    assert "plant" in window.text("latencies")
    assert not window.is_shown("banner")


def test_pictures_follow_one_another(window: Browser) -> None:
    shown: set[str] = set()

    def see() -> bool:
        shown.add(str(window.run("return document.getElementById('picture')?.src ?? ''")[-400:]))
        return len(shown) > 5

    window.wait("pictures", see)


def test_pause_and_resume_by_button_and_by_space(graph: LiveGraph, window: Browser) -> None:
    window.click("pause")
    graph.wait("the pause", lambda: graph.state("arbiter") == "PAUSED")
    window.click("resume")
    graph.wait_for_steps()
    window.wait("the state", lambda: window.is_shown("pause"))
    window.run("document.activeElement.blur()")
    window.press(SPACE)
    graph.wait("the pause", lambda: graph.state("arbiter") == "PAUSED")
    window.wait("the word", lambda: window.is_shown("resume"))
    window.press(SPACE)
    graph.wait_for_steps()


def test_stop_waits_for_start(graph: LiveGraph, window: Browser) -> None:
    window.click("stop")
    graph.wait("the stop", lambda: graph.state("arbiter") == "WAITING_FOR_START")
    window.click("start")
    graph.wait_for_steps()


def test_sliders_and_mode_are_parameters(graph: LiveGraph, window: Browser) -> None:
    window.wait("settings", lambda: window.text("p-words") == "p 0.5")
    window.run("document.querySelector('#p [tabindex]').focus()")
    window.press("\ue014")  # the arrow to the right
    window.wait("the new value", lambda: window.text("p-words") == "p 0.51")
    graph.wait("p", lambda: graph.status["arbiter"].get("p") == "0.51")
    window.choose("mode", "shadow")
    graph.wait("the mode", lambda: graph.status["arbiter"].get("mode") == "shadow")
    window.choose("mode", "collect")
    graph.wait("the mode", lambda: graph.status["arbiter"].get("mode") == "collect")


def test_what_becomes_of_a_model_is_told(graph: LiveGraph, window: Browser) -> None:
    write_model(graph.folder / "models" / "pull.safetensors", 2, 2, 0.3)
    window.wait("the model", lambda: "pull.safetensors" in str(window.run(
        "return document.getElementById('model').closest('label').innerText")))  # fmt: skip
    window.click("serve")
    graph.wait("the refusal", lambda: graph.state("augmentor") == "BAD_MODEL")
    window.wait(
        "the word", lambda: "pull.safetensors sees values, but light-tunnel shows image" in window.text("banner")
    )


@pytest.mark.parametrize("by_key", [False, True], ids=["button", "escape"])
def test_emergency_stop_holds_until_it_is_released(graph: LiveGraph, window: Browser, by_key: bool) -> None:
    graph.wait_for_steps()
    if by_key:
        window.press(ESCAPE)
    else:
        window.click("emergency-stop")
    graph.wait("the stop", lambda: graph.state(PLANT) == "EMERGENCY_STOP")
    window.wait("the confirmation", lambda: "the plant holds, confirmed after" in window.text("held"))
    window.wait("the state", lambda: window.text("state") == "emergency stop")
    window.click("release")
    graph.wait("the release", lambda: graph.state(PLANT) != "EMERGENCY_STOP")
    window.click("resume")
    graph.wait_for_steps()


def test_two_browsers_see_the_same(graph: LiveGraph, window: Browser) -> None:
    with browser() as other:
        other.open(url_of(graph))
        wait_for_news(other)
        other.click("pause")
        window.wait("the pause", lambda: window.text("state") == "paused")
        window.click("resume")
        other.wait("the way on", lambda: other.text("state") == "running")


def test_a_page_that_was_killed_comes_back_by_itself(graph: LiveGraph, window: Browser) -> None:
    graph.processes["page"].kill()
    window.wait("the word", lambda: "No connection" in window.text("lost"))
    window.click("emergency-stop")
    window.wait("the word", lambda: "NOT CONFIRMED" in window.text("held"))
    graph.wait_for_steps()
    start_page(graph)
    window.wait("the page", lambda: not window.is_shown("lost"))
    wait_for_news(window)
    window.wait("earlier episodes", lambda: "–" not in window.text("reached"))


def test_a_graph_that_ends_says_so(graph: LiveGraph, window: Browser) -> None:
    for name in ("arbiter", "logging_policy", "augmentor", PLANT, "recorder"):
        assert graph.processes[name].end() == 0
    assert graph.processes["page"].end() == 0
    window.wait("the word", lambda: "has ended" in window.text("banner"))
    window.wait("the word", lambda: "No connection" in window.text("lost"))

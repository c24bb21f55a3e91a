from __future__ import annotations

import pytest
from diagnostic_msgs.msg import DiagnosticStatus

from lift_ros.nodes.diagnostics import LATENCY_WINDOW, Diagnostics, Status


def values_of(message: DiagnosticStatus) -> dict[str, str]:
    return {item.key: item.value for item in message.values}


@pytest.mark.parametrize("status", Status, ids=lambda status: status.name)
def test_every_status_has_one_sentence_and_a_level(status: Status) -> None:
    assert status.sentence.endswith(".")
    assert status.sentence.count(". ") == 0
    assert status.level in (DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR)


def test_no_two_statuses_say_the_same() -> None:
    assert len({status.sentence for status in Status}) == len(Status)


def test_report_holds_status_counts_rates_latencies_and_drops() -> None:
    diagnostics = Diagnostics("/lift/arbiter", "/lift")
    diagnostics.status, diagnostics.detail = Status.HOLDING, "Since now."
    for duration in (1_000_000, 2_000_000, 9_000_000):
        diagnostics.latency("step", duration)
        diagnostics.count("steps")
    diagnostics.drops["other step"] += 1
    diagnostics.drops["other step"] += 1
    message = diagnostics.message()
    values = values_of(message)
    assert (message.name, message.hardware_id, message.level) == ("/lift/arbiter", "/lift", DiagnosticStatus.WARN)
    assert message.message == f"{Status.HOLDING.sentence} Since now."
    assert values["status"] == "HOLDING"
    assert values["steps"] == "3"
    assert float(values["steps per second"]) > 0
    assert (values["step p50 [ms]"], values["step max [ms]"]) == ("2.000", "9.000")
    assert (values["drops"], values["drops: other step"]) == ("2", "2")


def test_rates_count_from_report_to_report_and_numbers_go_on() -> None:
    diagnostics = Diagnostics("/lift/arbiter", "/lift")
    diagnostics.count("steps")
    diagnostics.message()
    values = values_of(diagnostics.message())
    assert values["steps"] == "1"
    assert float(values["steps per second"]) == 0.0


def test_latencies_forget_what_is_long_ago() -> None:
    diagnostics = Diagnostics("/lift/arbiter", "/lift")
    diagnostics.latency("step", 10**12)
    for _ in range(LATENCY_WINDOW):
        diagnostics.latency("step", 1_000_000)
    assert values_of(diagnostics.message())["step max [ms]"] == "1.000"

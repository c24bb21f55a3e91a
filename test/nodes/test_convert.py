"""Every record survives the way into a compiled message, through CDR and back; what must not travel is refused."""

from __future__ import annotations

import dataclasses
import math
from array import array
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rclpy.serialization import deserialize_message, serialize_message

import lift_ros.msg as msg
from lift_ros.collection.exchange import Hold, Move, Observation, Proposal, Query, Receipt, Refusal, Reset
from lift_ros.collection.notices import Failed, Model, Ready
from lift_ros.collection.records import Episode, Mode, Outcome, Rejection, Source, Step, same
from lift_ros.nodes import convert
from lift_ros.nodes.convert import CommandKind, MessageError, ReceiptKind

TIME = 1_700_000_000_123_456_789
# A deadline per example says nothing on a loaded machine.
relaxed = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
finite = st.floats(allow_nan=False, allow_infinity=False)
vectors = st.lists(finite, max_size=64).map(lambda values: np.array(values, dtype=np.float64))
wishes = st.lists(st.floats(), max_size=64).map(lambda values: np.array(values, dtype=np.float64))
counts = st.integers(0, 2**32 - 1)
seeds = st.integers(0, 2**64 - 1)
pictures = st.none() | st.builds(
    lambda height, width, seed: np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8),
    st.integers(1, 9),
    st.integers(1, 9),
    st.integers(0, 99),
)


def through_cdr(message: Any) -> Any:
    return deserialize_message(serialize_message(message), type(message))


def agree(first: Any, second: Any) -> bool:
    """Whether two exchanged dataclasses agree bit for bit."""
    return type(first) is type(second) and all(
        same(getattr(first, field.name), getattr(second, field.name)) for field in dataclasses.fields(first)
    )


def make_step(**changes: Any) -> Step:
    fields: dict[str, Any] = {
        "episode": 3,
        "index": 0,
        "time_ns": TIME,
        "observation": np.array([0.1, -0.2, 0.3]),
        "action": np.array([0.5, 0.25]),
        "source": Source.AUGMENTOR,
        "position": np.array([1.0, 2.0]),
        "reward": -0.75,
        "logging_proposal": np.array([0.1, 0.0]),
        "augmentor_proposal": np.array([0.5, 0.25]),
        "rejection": Rejection.NONE,
        "draw": 0.25,
        "p": 0.5,
        "augmentations_left": 19,
        "model_hash": "ab" * 32,
    }
    return Step(**fields | changes)


def make_episode(**changes: Any) -> Episode:
    fields: dict[str, Any] = {
        "index": 3,
        "seed": 2**64 - 1,
        "mode": Mode.COLLECT,
        "outcome": Outcome.REACHED,
        "steps": [make_step(), make_step(index=1, source=Source.LOGGING_POLICY)],
        "final_observation": np.array([0.0, 0.0, 0.1]),
        "final_position": np.array([1.5, 2.25]),
        "goal": np.array([1.5, 2.0]),
        "context": np.arange(9.0),
        "start_time_ns": TIME,
        "end_time_ns": TIME + 5,
    }
    return Episode(**fields | changes)


def make_observation(**changes: Any) -> Observation:
    fields: dict[str, Any] = {"episode": 1, "step": 2, "values": np.array([1.0, 2.0, 3.0]), "time_ns": TIME}
    return Observation(**fields | changes)


# --- constants -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "prefix", "kind"),
    [
        (msg.Step, "SOURCE_", Source),
        (msg.Step, "REJECTION_", Rejection),
        (msg.Proposal, "SOURCE_", Source),
        (msg.Query, "MODE_", Mode),
        (msg.Episode, "MODE_", Mode),
        (msg.Episode, "OUTCOME_", Outcome),
        (msg.Observation, "REFUSAL_", Refusal),
        (msg.Command, "KIND_", CommandKind),
        (msg.Receipt, "KIND_", ReceiptKind),
    ],
)
def test_constants_of_messages_and_records_agree(message: Any, prefix: str, kind: Any) -> None:
    source = Path(__file__).parents[2] / "msg" / f"{message.__name__}.msg"
    declared = [
        line.split()[1].split("=")[0] for line in source.read_text().splitlines() if line.startswith("uint8 " + prefix)
    ]
    assert {name.removeprefix(prefix): getattr(message, name) for name in declared} == {m.name: m.value for m in kind}


# --- there and back ------------------------------------------------------------------------------------------------


@relaxed
@given(
    step=st.builds(
        Step,
        episode=counts,
        index=counts,
        time_ns=st.integers(0, (2**31 - 1) * 10**9),
        observation=vectors,
        action=vectors,
        source=st.sampled_from(Source),
        position=vectors,
        reward=finite | st.just(math.nan),
        logging_proposal=wishes,
        augmentor_proposal=wishes,
        rejection=st.sampled_from(Rejection),
        draw=st.floats(0, 1) | st.just(math.nan),
        p=st.floats(0, 1),
        augmentations_left=counts,
        model_hash=st.text("0123456789abcdef", max_size=64),
        image=pictures,
    )
)
def test_step_returns_bit_for_bit(step: Step) -> None:
    assert same(convert.step_from_message(through_cdr(convert.step_to_message(step))), step)


@relaxed
@given(seed=seeds, mode=st.sampled_from(Mode), outcome=st.sampled_from(Outcome), image=pictures, context=vectors)
def test_episode_returns_bit_for_bit(seed: int, mode: Mode, outcome: Outcome, image: Any, context: Any) -> None:
    episode = make_episode(seed=seed, mode=mode, outcome=outcome, final_image=image, context=context, reason="stopped")
    message = through_cdr(convert.episode_to_message(episode))
    assert same(convert.episode_from_message(message, episode.steps), episode)
    assert (message.steps, message.augmentations, message.episode_return) == (2, 1, -1.5)


@relaxed
@given(values=vectors, position=vectors, reward=finite | st.just(math.nan), ended=st.booleans(), image=pictures)
def test_observation_returns_bit_for_bit(values: Any, position: Any, reward: float, ended: bool, image: Any) -> None:
    sent = make_observation(
        values=values, position=position, goal=position, reward=reward, terminated=ended, image=image, time_ns=5
    )
    message = through_cdr(convert.observation_to_message(sent, frame_id="rig"))
    assert message.header.frame_id == "rig"
    assert message.header.stamp.nanosec == 5
    assert agree(convert.observation_from_message(message, 5), sent)


@relaxed
@given(seed=seeds, values=vectors, handoff=st.booleans(), mode=st.sampled_from(Mode), image=pictures)
def test_query_returns_bit_for_bit(seed: int, values: Any, handoff: bool, mode: Mode, image: Any) -> None:
    sent = Query(1, 2, seed, values, handoff, mode, image)
    assert agree(convert.query_from_message(through_cdr(convert.query_to_message(sent, TIME))), sent)


@relaxed
@given(action=wishes, source=st.sampled_from(Source))
def test_proposal_returns_bit_for_bit_whatever_it_wishes(action: Any, source: Source) -> None:
    sent = Proposal(1, 2, source, action, "cd" * 32, TIME)
    assert agree(convert.proposal_from_message(through_cdr(convert.proposal_to_message(sent)), TIME), sent)


@pytest.mark.parametrize(
    "command", [Reset(4, 2**64 - 1), Hold(4, 5), Move(4, 5, np.array([0.5, -0.5])), Move(4, 5, np.array([math.nan]))]
)
def test_command_returns(command: Reset | Move | Hold) -> None:
    assert agree(convert.command_from_message(through_cdr(convert.command_to_message(command, TIME))), command)


@pytest.mark.parametrize("receipt", [Ready(7), Receipt(7, 3, TIME), Receipt(7, None, TIME), Failed("disk full", 7)])
def test_receipt_returns(receipt: Ready | Receipt | Failed) -> None:
    assert convert.receipt_from_message(through_cdr(convert.receipt_to_message(receipt, 1)), TIME) == receipt


def test_model_returns() -> None:
    model = Model("/runs/a/model", "ab" * 32, "cql", 100)
    assert convert.model_from_message(through_cdr(convert.model_to_message(model, TIME))) == model


def test_types_of_numpy_reach_the_message_as_plain_ones() -> None:
    """A compiled message ends the process where a field holds a numpy scalar."""
    step = make_step(
        episode=np.int64(3),
        index=np.uint8(1),
        reward=np.float32(-0.5),
        draw=np.float64(0.5),
        augmentations_left=np.int32(2),
        observation=np.array([1, 2, 3], dtype=np.float32)[::-1],
    )
    message = convert.step_to_message(step)
    assert [type(getattr(message, name)) for name in ("episode", "step", "reward", "draw")] == [int, int, float, float]
    assert through_cdr(message).observation == array("d", [3.0, 2.0, 1.0])
    observation = make_observation(terminated=np.bool_(True))
    assert through_cdr(convert.observation_to_message(observation)).terminated is True


def test_received_arrays_are_own_copies() -> None:
    message = convert.step_to_message(make_step())
    step = convert.step_from_message(message)
    message.observation[0] = 99.0
    assert step.observation[0] == 0.1


def test_long_reason_is_cut_visibly_and_fits() -> None:
    message = through_cdr(convert.episode_to_message(make_episode(reason="ü" * 300, outcome=Outcome.ABORTED)))
    assert message.reason.endswith("…")
    assert len(message.reason.encode()) <= 256


def test_rows_with_padding_are_read() -> None:
    image = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    message = convert.image_to_message(image)
    rows = np.zeros((2, 16), dtype=np.uint8)
    rows[:, :12] = image.reshape(2, 12)
    message.step = 16
    message.data = array("B", rows.tobytes())
    assert np.array_equal(convert.image_from_message(message), image)


# --- at the door ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value", "limit"),
    [
        ("observation", np.array([math.nan]), "finite"),
        ("observation", np.array([math.inf]), "finite"),
        ("observation", np.zeros(65), "at most 64"),
        ("observation", np.zeros((2, 2)), "a vector"),
        ("action", np.array([0.0, math.nan]), "finite"),
        ("position", np.array([-math.inf]), "finite"),
        ("reward", math.inf, "finite"),
        ("draw", 1.5, "between 0.0 and 1.0"),
        ("p", math.nan, "between 0.0 and 1.0"),
        ("p", -0.1, "between 0.0 and 1.0"),
        ("episode", -1, "between 0 and 4294967295"),
        ("augmentations_left", 2**32, "between 0 and 4294967295"),
        ("source", 0, "1 (LOGGING_POLICY), 2 (AUGMENTOR)"),
        ("rejection", 8, "one of 0 (NONE)"),
        ("model_hash", "a" * 65, "at most 64"),
        ("image", np.zeros((2, 2), dtype=np.uint8), "uint8 of shape (height, width, 3)"),
        ("image", np.zeros((2, 2, 3)), "uint8 of shape (height, width, 3)"),
        ("image", np.zeros((0, 2, 3), dtype=np.uint8), "uint8 of shape (height, width, 3)"),
    ],
)
def test_step_that_must_not_travel_is_refused(field: str, value: Any, limit: str) -> None:
    with pytest.raises(MessageError) as caught:
        convert.step_to_message(make_step(**{field: value}))
    assert caught.value.field == field
    assert limit in str(caught.value)


def spoil(message: Any, field: str, value: Any) -> Any:
    """Set a field as a careless sender in another language might."""
    *path, last = field.split(".")
    target = message
    for name in path:
        target = getattr(target, name)
    setattr(target, last, value)
    return message


@pytest.mark.parametrize(
    ("field", "value", "limit"),
    [
        ("observation", array("d", [math.nan]), "finite"),
        ("observation", array("d", [0.0] * 65), "at most 64"),
        ("action", array("d", [math.inf]), "finite"),
        ("source", 0, "LOGGING_POLICY"),
        ("source", 3, "LOGGING_POLICY"),
        ("rejection", 200, "NONE"),
        ("draw", -0.5, "between"),
        ("p", 2.0, "between"),
        ("reward", math.inf, "finite"),
        ("model_hash", "a" * 65, "at most 64"),
    ],
)
def test_received_step_is_checked(field: str, value: Any, limit: str) -> None:
    with pytest.raises(MessageError) as caught:
        convert.step_from_message(spoil(convert.step_to_message(make_step()), field, value))
    assert caught.value.field == field
    assert limit in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("image.encoding", "bgr8", "'rgb8'"),
        ("image.data", array("B", [0] * 11), "12 for 2 rows"),
        ("image.step", 3, "at least 6"),
        ("image.height", 0, "not 0"),
    ],
)
def test_received_image_is_checked(field: str, value: Any, named: str) -> None:
    message = convert.observation_to_message(make_observation(image=np.zeros((2, 2, 3), dtype=np.uint8)))
    with pytest.raises(MessageError, match="^image") as caught:
        convert.observation_from_message(spoil(message, field, value), TIME)
    assert named in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("values", array("d", [math.nan, 0.0, 0.0])),
        ("position", array("d", [math.inf])),
        ("context", array("d", [math.nan])),
        ("context", array("d", [0.0] * 4097)),
        ("refusal", 6),
        ("reward", -math.inf),
    ],
)
def test_received_observation_is_checked(field: str, value: Any) -> None:
    message = spoil(convert.observation_to_message(make_observation()), field, value)
    with pytest.raises(MessageError) as caught:
        convert.observation_from_message(message, TIME)
    assert caught.value.field == field


def test_sizes_are_checked_where_the_receiver_knows_them() -> None:
    message = convert.observation_to_message(make_observation(position=np.zeros(2)))
    assert convert.observation_from_message(message, TIME, size=3, position_size=2).position.size == 2
    with pytest.raises(MessageError, match="values is 3 entries long, expected 4"):
        convert.observation_from_message(message, TIME, size=4)
    with pytest.raises(MessageError, match="position is 2 entries long, expected 3"):
        convert.observation_from_message(message, TIME, size=3, position_size=3)
    query = convert.query_to_message(Query(1, 2, 3, np.zeros(3), False, Mode.COLLECT), TIME)
    with pytest.raises(MessageError, match="values is 3 entries long, expected 2"):
        convert.query_from_message(query, size=2)


@pytest.mark.parametrize(
    ("message", "field", "read"),
    [
        (msg.Query(), "mode", convert.query_from_message),
        (msg.Command(), "kind", convert.command_from_message),
        (msg.Proposal(), "source", lambda message: convert.proposal_from_message(message, TIME)),
        (msg.Receipt(), "kind", lambda message: convert.receipt_from_message(message, TIME)),
        (msg.Episode(), "outcome", lambda message: convert.episode_from_message(message, [])),
    ],
)
def test_unknown_constants_are_refused(message: Any, field: str, read: Any) -> None:
    with pytest.raises(MessageError) as caught:
        read(spoil(message, field, 99))
    assert (caught.value.field, caught.value.value) == (field, 99)


def test_giant_vectors_do_not_pass_in_wishes_either() -> None:
    with pytest.raises(MessageError, match="action is 65 entries long, expected at most 64"):
        convert.command_to_message(Move(1, 2, np.zeros(65)), TIME)
    with pytest.raises(MessageError, match="action is 65 entries long, expected at most 64"):
        convert.proposal_to_message(Proposal(1, 2, Source.AUGMENTOR, np.zeros(65)))


@pytest.mark.parametrize("kept", [[0], [1], [1, 0], [0, 1, 1], []])
def test_episode_without_all_its_steps_in_order_is_refused(kept: list[int]) -> None:
    episode = make_episode()
    message = convert.episode_to_message(episode)
    with pytest.raises(MessageError, match="^steps"):
        convert.episode_from_message(message, [episode.steps[number] for number in kept])


def test_steps_of_another_episode_are_refused() -> None:
    episode = make_episode()
    others = [make_step(episode=4), make_step(episode=4, index=1)]
    with pytest.raises(MessageError, match="^steps"):
        convert.episode_from_message(convert.episode_to_message(episode), others)


def test_time_before_the_epoch_is_refused() -> None:
    with pytest.raises(MessageError, match=r"stamp\.sec"):
        convert.time_to_message(-1)


def test_every_field_of_every_message_bears_comment_and_unit() -> None:
    for source in sorted((Path(__file__).parents[2] / "msg").glob("*.msg")):
        for line in source.read_text().splitlines():
            if line and not line.startswith("#") and "=" not in line.split("#")[0].replace("<=", ""):
                declaration, _, comment = line.partition("#")
                assert comment.strip(), f"{source.name}: {declaration}"
                assert "[" in comment and "]" in comment, f"{source.name}: {declaration} has no unit"
                assert "[]" not in declaration, f"{source.name}: {declaration} is not bounded"

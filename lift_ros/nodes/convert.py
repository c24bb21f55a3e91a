"""Messages to and from the core's dataclasses, with every value checked at the door in both directions.

Compiled messages end the process when a field holds another type than declared, so each field is given exactly its
type here. What others observed must be finite; what somebody wishes (a proposal, the action of a command) may be NaN:
the arbiter and the plant judge it and say why they refuse it.
"""

from __future__ import annotations

import math
from array import array
from enum import IntEnum
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from builtin_interfaces.msg import Time
from sensor_msgs.msg import Image

import lift_ros.msg as msg
from lift_ros.array_types import FloatArray
from lift_ros.collection.exchange import Hold, Move, Observation, Proposal, Query, Receipt, Refusal, Reset
from lift_ros.collection.notices import Failed, Model, Ready
from lift_ros.collection.records import Episode, Mode, Outcome, Rejection, Source, Step

Picture = npt.NDArray[np.uint8]
Constant = TypeVar("Constant", bound=IntEnum)

VECTOR_LIMIT = 64
CONTEXT_LIMIT = 4096
HASH_LIMIT = 64
REASON_LIMIT = 256
PATH_LIMIT = 4096
UINT32_LIMIT = 2**32 - 1
UINT64_LIMIT = 2**64 - 1
SECONDS_LIMIT = 2**31 - 1


class CommandKind(IntEnum):
    """What the plant is to do. The values are those of `Command.msg`."""

    MOVE = 0
    RESET = 1
    HOLD = 2


class ReceiptKind(IntEnum):
    """What the recorder says. The values are those of `Receipt.msg`."""

    READY = 0
    STEP = 1
    EPISODE = 2
    FAILED = 3


class MessageError(ValueError):
    """A field holds what its message must not carry; names the field, the value and the limit."""

    def __init__(self, field: str, value: object, limit: str) -> None:
        super().__init__(f"{field} is {value}, expected {limit}")
        self.field = field
        self.value = value
        self.limit = limit


# --- single fields -------------------------------------------------------------------------------------------------


def _vector(field: str, vector: npt.ArrayLike, *, limit: int = VECTOR_LIMIT, finite: bool = True) -> FloatArray:
    values = np.array(vector, dtype=np.float64)
    if values.ndim != 1:
        raise MessageError(field, f"an array of shape {values.shape}", "a vector")
    if values.size > limit:
        raise MessageError(field, f"{values.size} entries long", f"at most {limit}")
    if finite and not np.isfinite(values).all():
        raise MessageError(field, values.tolist(), "finite entries")
    return values


def _sized(field: str, vector: npt.ArrayLike, size: int | None, *, optional: bool = False) -> FloatArray:
    values = _vector(field, vector)
    if size is not None and values.size != size and not (optional and values.size == 0):
        raise MessageError(field, f"{values.size} entries long", f"{size}")
    return values


def _packed(values: FloatArray) -> array[float]:
    return array("d", values.tobytes())


def _whole(field: str, value: int, limit: int = UINT32_LIMIT) -> int:
    number = int(value)
    if not 0 <= number <= limit:
        raise MessageError(field, number, f"between 0 and {limit}")
    return number


def real(field: str, value: float, *, low: float = -math.inf, high: float = math.inf, unknown: bool = True) -> float:
    """Return a finite number of this range, or NaN where it may be unknown."""
    number = float(value)
    if math.isnan(number):
        if not unknown:
            raise MessageError(field, number, f"between {low} and {high}")
    elif math.isinf(number) or not low <= number <= high:
        raise MessageError(field, number, f"finite and between {low} and {high}")
    return number


def constant(field: str, value: int, kind: type[Constant]) -> Constant:
    """Return the member of an enumeration that a field names."""
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(f"{member.value} ({member.name})" for member in kind)
        raise MessageError(field, value, f"one of {known}") from None


def _text(field: str, value: str, limit: int) -> str:
    text = str(value)
    length = len(text.encode("utf-8", "surrogatepass"))
    if length > limit:
        raise MessageError(field, f"{length} bytes long", f"at most {limit}")
    return text


def shorten(prose: str, limit: int = REASON_LIMIT) -> str:
    """Return `prose` cut to `limit` bytes with an ellipsis: a reason must not fail for its length."""
    encoded = prose.encode("utf-8", "replace")
    if len(encoded) <= limit:
        return encoded.decode()
    return encoded[: limit - 3].decode("utf-8", "ignore") + "…"


def time_to_message(time_ns: int) -> Time:
    """Return nanoseconds since the epoch as a ROS time."""
    seconds, nanoseconds = divmod(int(time_ns), 1_000_000_000)
    message = Time()
    message.sec = _whole("stamp.sec", seconds, SECONDS_LIMIT)
    message.nanosec = nanoseconds
    return message


def time_from_message(message: Time) -> int:
    """Return a ROS time as nanoseconds since the epoch."""
    return int(message.sec) * 1_000_000_000 + int(message.nanosec)


def image_to_message(image: Picture | None, field: str = "image") -> Image:
    """Return an rgb8 picture of shape (height, width, 3), or an image of width 0 where there is none."""
    message = Image()
    if image is None:
        return message
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or image.size == 0:
        raise MessageError(field, f"{image.dtype} of shape {image.shape}", "uint8 of shape (height, width, 3)")
    height, width, _ = image.shape
    message.height = int(height)
    message.width = int(width)
    message.encoding = "rgb8"
    message.step = 3 * int(width)
    message.data = array("B", image.tobytes())
    return message


def image_from_message(message: Image, field: str = "image") -> Picture | None:
    """Return the picture of an rgb8 image message, or None where its width is 0."""
    if message.width == 0:
        return None
    if message.encoding != "rgb8":
        raise MessageError(f"{field}.encoding", repr(message.encoding), "'rgb8'")
    if message.step < 3 * message.width:
        raise MessageError(f"{field}.step", message.step, f"at least {3 * message.width} for width {message.width}")
    if message.height == 0 or len(message.data) != message.step * message.height:
        expected = f"{message.step * message.height} for {message.height} rows of {message.step} bytes, not 0"
        raise MessageError(f"{field}.data", f"{len(message.data)} bytes long", expected)
    rows = np.frombuffer(message.data, np.uint8).reshape(message.height, message.step)
    return rows[:, : 3 * message.width].reshape(message.height, message.width, 3).copy()


def _stamp(message: Any, time_ns: int) -> None:
    message.header.stamp = time_to_message(time_ns)


def _stamped(message: Any) -> int:
    return time_from_message(message.header.stamp)


# --- what is recorded ----------------------------------------------------------------------------------------------


def step_to_message(step: Step) -> msg.Step:
    """Return the message of a step."""
    message = msg.Step()
    _stamp(message, step.time_ns)
    message.episode = _whole("episode", step.episode)
    message.step = _whole("step", step.index)
    message.observation = _packed(_vector("observation", step.observation))
    message.position = _packed(_vector("position", step.position))
    message.action = _packed(_vector("action", step.action))
    message.reward = real("reward", step.reward)
    message.source = int(constant("source", step.source, Source))
    message.logging_proposal = _packed(_vector("logging_proposal", step.logging_proposal, finite=False))
    message.augmentor_proposal = _packed(_vector("augmentor_proposal", step.augmentor_proposal, finite=False))
    message.rejection = int(constant("rejection", step.rejection, Rejection))
    message.draw = real("draw", step.draw, low=0.0, high=1.0)
    message.p = real("p", step.p, low=0.0, high=1.0, unknown=False)
    message.augmentations_left = _whole("augmentations_left", step.augmentations_left)
    message.model_hash = _text("model_hash", step.model_hash, HASH_LIMIT)
    message.image = image_to_message(step.image)
    return message


def step_from_message(message: msg.Step) -> Step:
    """Return the step of a message."""
    return Step(
        episode=message.episode,
        index=message.step,
        time_ns=_stamped(message),
        observation=_vector("observation", message.observation),
        action=_vector("action", message.action),
        source=constant("source", message.source, Source),
        position=_vector("position", message.position),
        reward=real("reward", message.reward),
        logging_proposal=_vector("logging_proposal", message.logging_proposal, finite=False),
        augmentor_proposal=_vector("augmentor_proposal", message.augmentor_proposal, finite=False),
        rejection=constant("rejection", message.rejection, Rejection),
        draw=real("draw", message.draw, low=0.0, high=1.0),
        p=real("p", message.p, low=0.0, high=1.0, unknown=False),
        augmentations_left=message.augmentations_left,
        model_hash=_text("model_hash", message.model_hash, HASH_LIMIT),
        image=image_from_message(message.image),
    )


def episode_to_message(episode: Episode) -> msg.Episode:
    """Return the message that closes an episode; its steps travel in messages of their own."""
    message = msg.Episode()
    _stamp(message, episode.end_time_ns)
    message.start = time_to_message(episode.start_time_ns)
    message.episode = _whole("episode", episode.index)
    message.seed = _whole("seed", episode.seed, UINT64_LIMIT)
    message.mode = int(constant("mode", episode.mode, Mode))
    message.outcome = int(constant("outcome", episode.outcome, Outcome))
    message.reason = shorten(episode.reason)
    message.steps = _whole("steps", len(episode.steps))
    message.augmentations = _whole("augmentations", episode.augmentations)
    message.episode_return = real("episode_return", episode.episode_return)
    message.final_observation = _packed(_vector("final_observation", episode.final_observation))
    message.final_position = _packed(_vector("final_position", episode.final_position))
    message.goal = _packed(_vector("goal", episode.goal))
    message.context = _packed(_vector("context", episode.context, limit=CONTEXT_LIMIT))
    message.final_image = image_to_message(episode.final_image, "final_image")
    return message


def episode_from_message(message: msg.Episode, steps: list[Step]) -> Episode:
    """Return the episode of a message and the steps that were received before it, none missing."""
    numbers = [step.index for step in steps if step.episode == message.episode]
    if numbers != list(range(len(steps))) or len(steps) != message.steps:
        got = f"{message.steps} with {len(numbers)} of {len(steps)} received steps belonging to it in order"
        raise MessageError("steps", got, "all steps of the episode in order")
    return Episode(
        index=message.episode,
        seed=message.seed,
        mode=constant("mode", message.mode, Mode),
        outcome=constant("outcome", message.outcome, Outcome),
        steps=steps,
        final_observation=_vector("final_observation", message.final_observation),
        reason=_text("reason", message.reason, REASON_LIMIT),
        final_position=_vector("final_position", message.final_position),
        final_image=image_from_message(message.final_image, "final_image"),
        goal=_vector("goal", message.goal),
        context=_vector("context", message.context, limit=CONTEXT_LIMIT),
        start_time_ns=time_from_message(message.start),
        end_time_ns=_stamped(message),
    )


# --- what nodes tell each other ------------------------------------------------------------------------------------


def observation_to_message(observation: Observation, *, frame_id: str = "") -> msg.Observation:
    """Return the message of what the plant reports, stamped with the observation's own time."""
    message = msg.Observation()
    _stamp(message, observation.time_ns)
    message.header.frame_id = str(frame_id)
    message.episode = _whole("episode", observation.episode)
    message.step = _whole("step", observation.step)
    message.values = _packed(_vector("values", observation.values))
    message.position = _packed(_vector("position", observation.position))
    message.goal = _packed(_vector("goal", observation.goal))
    message.context = _packed(_vector("context", observation.context, limit=CONTEXT_LIMIT))
    message.reward = real("reward", observation.reward)
    message.terminated = bool(observation.terminated)
    message.refusal = int(constant("refusal", observation.refusal, Refusal))
    message.image = image_to_message(observation.image)
    return message


def observation_from_message(
    message: msg.Observation, time_ns: int, *, size: int | None = None, position_size: int | None = None
) -> Observation:
    """Return what the plant reports, received at `time_ns`; the sizes are what the receiver expects, where it knows."""
    return Observation(
        episode=message.episode,
        step=message.step,
        values=_sized("values", message.values, size),
        position=_sized("position", message.position, position_size, optional=True),
        goal=_sized("goal", message.goal, position_size, optional=True),
        context=_vector("context", message.context, limit=CONTEXT_LIMIT),
        reward=real("reward", message.reward),
        terminated=message.terminated,
        refusal=constant("refusal", message.refusal, Refusal),
        image=image_from_message(message.image),
        time_ns=time_ns,
    )


def query_to_message(query: Query, time_ns: int) -> msg.Query:
    """Return the message of a question asked at `time_ns`."""
    message = msg.Query()
    _stamp(message, time_ns)
    message.episode = _whole("episode", query.episode)
    message.step = _whole("step", query.step)
    message.seed = _whole("seed", query.seed, UINT64_LIMIT)
    message.values = _packed(_vector("values", query.values))
    message.handoff = bool(query.handoff)
    message.mode = int(constant("mode", query.mode, Mode))
    message.image = image_to_message(query.image)
    return message


def query_from_message(message: msg.Query, *, size: int | None = None) -> Query:
    """Return the question of a message; `size` is what the receiver expects, where it knows."""
    return Query(
        episode=message.episode,
        step=message.step,
        seed=message.seed,
        values=_sized("values", message.values, size),
        handoff=message.handoff,
        mode=constant("mode", message.mode, Mode),
        image=image_from_message(message.image),
    )


def proposal_to_message(proposal: Proposal) -> msg.Proposal:
    """Return the message of an answer, stamped with its own time."""
    message = msg.Proposal()
    _stamp(message, proposal.time_ns)
    message.episode = _whole("episode", proposal.episode)
    message.step = _whole("step", proposal.step)
    message.source = int(constant("source", proposal.source, Source))
    message.action = _packed(_vector("action", proposal.action, finite=False))
    message.model_hash = _text("model_hash", proposal.model_hash, HASH_LIMIT)
    return message


def proposal_from_message(message: msg.Proposal, time_ns: int) -> Proposal:
    """Return the answer of a message, received at `time_ns`."""
    return Proposal(
        episode=message.episode,
        step=message.step,
        source=constant("source", message.source, Source),
        action=_vector("action", message.action, finite=False),
        model_hash=_text("model_hash", message.model_hash, HASH_LIMIT),
        time_ns=time_ns,
    )


def command_to_message(command: Reset | Move | Hold, time_ns: int) -> msg.Command:
    """Return the message of a command given at `time_ns`."""
    message = msg.Command()
    _stamp(message, time_ns)
    message.episode = _whole("episode", command.episode)
    if isinstance(command, Reset):
        message.kind = int(CommandKind.RESET)
        message.seed = _whole("seed", command.seed, UINT64_LIMIT)
        return message
    message.step = _whole("step", command.step)
    if isinstance(command, Hold):
        message.kind = int(CommandKind.HOLD)
        return message
    message.kind = int(CommandKind.MOVE)
    message.action = _packed(_vector("action", command.action, finite=False))
    return message


def command_from_message(message: msg.Command) -> Reset | Move | Hold:
    """Return the command of a message."""
    kind = constant("kind", message.kind, CommandKind)
    if kind is CommandKind.RESET:
        return Reset(message.episode, message.seed)
    if kind is CommandKind.HOLD:
        return Hold(message.episode, message.step)
    return Move(message.episode, message.step, _vector("action", message.action, finite=False))


def receipt_to_message(receipt: Ready | Receipt | Failed, time_ns: int) -> msg.Receipt:
    """Return the message of what the recorder says at `time_ns`."""
    message = msg.Receipt()
    _stamp(message, time_ns)
    message.episode = _whole("episode", receipt.episode)
    if isinstance(receipt, Ready):
        message.kind = int(ReceiptKind.READY)
    elif isinstance(receipt, Failed):
        message.kind = int(ReceiptKind.FAILED)
        message.reason = shorten(receipt.reason)
    elif receipt.step is None:
        message.kind = int(ReceiptKind.EPISODE)
    else:
        message.kind = int(ReceiptKind.STEP)
        message.step = _whole("step", receipt.step)
    return message


def receipt_from_message(message: msg.Receipt, time_ns: int) -> Ready | Receipt | Failed:
    """Return what the recorder says in a message received at `time_ns`."""
    kind = constant("kind", message.kind, ReceiptKind)
    if kind is ReceiptKind.READY:
        return Ready(message.episode)
    if kind is ReceiptKind.FAILED:
        return Failed(_text("reason", message.reason, REASON_LIMIT), message.episode)
    return Receipt(message.episode, message.step if kind is ReceiptKind.STEP else None, time_ns)


def model_to_message(model: Model, time_ns: int) -> msg.Model:
    """Return the message that announces a model trained at `time_ns`."""
    message = msg.Model()
    _stamp(message, time_ns)
    message.path = _text("path", model.path, PATH_LIMIT)
    message.sha256 = _text("sha256", model.sha256, HASH_LIMIT)
    message.algorithm = _text("algorithm", model.algorithm, HASH_LIMIT)
    message.episodes = _whole("episodes", model.episodes)
    return message


def model_from_message(message: msg.Model) -> Model:
    """Return the model that a message announces."""
    return Model(
        path=_text("path", message.path, PATH_LIMIT),
        sha256=_text("sha256", message.sha256, HASH_LIMIT),
        algorithm=_text("algorithm", message.algorithm, HASH_LIMIT),
        episodes=message.episodes,
    )

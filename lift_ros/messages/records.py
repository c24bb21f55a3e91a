"""Which record travels as which message: the one table from the core's dataclasses to msg/*.msg."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeVar, get_type_hints

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.collection.exchange import Failed, Hold, Model, Move, Observation, Proposal, Query, Ready, Receipt, Reset
from lift_ros.collection.records import Episode, Step
from lift_ros.messages.codec import make_decoder, make_encoder, make_pair
from lift_ros.messages.definitions import fields
from lift_ros.messages.errors import MessageError

_NOTHING = np.empty(0)
Content = TypeVar("Content")


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


@dataclass(slots=True)
class EpisodeEnd:
    """An `Episode.msg`: the episode without its steps, and what it says about them."""

    episode: Episode
    steps: int
    augmentations: int
    episode_return: float

    @classmethod
    def of(cls, episode: Episode) -> EpisodeEnd:
        """Return the end of an episode that holds its steps."""
        return cls(episode, len(episode.steps), episode.augmentations, episode.episode_return)


_RUN = {"header.frame_id": "run"}  # where the token of the run travels, but in observations, whose frame is a frame
_EPISODE_NAMES = {"header": "end_time_ns", "start": "start_time_ns", "episode": "index"}
_OF_END = set(EpisodeEnd.__annotations__) - {"episode"}

_STEP_NAMES = {"header": "time_ns", "step": "index"}
encode_step, decode_step = make_pair("Step", Step, _STEP_NAMES)
step_pieces = make_encoder("Step", _STEP_NAMES, in_pieces=True)
encode_observation, decode_observation = make_pair("Observation", Observation, {"header": "time_ns"})
encode_query = make_encoder("Query")
_read_query = make_decoder("Query", Query, get_type_hints(Query), _RUN)
encode_proposal, decode_proposal = make_pair("Proposal", Proposal, {"header": "time_ns", **_RUN})
encode_model, decode_model = make_pair("Model", Model)
encode_episode = make_encoder(
    "Episode",
    {
        field.name: f"episode.{_EPISODE_NAMES.get(field.name, field.name)}"
        for field in fields("Episode")
        if field.name not in _OF_END
    },
)
_COMMANDS: dict[type, Callable[..., bytes]] = {
    Move: make_encoder("Command", fixed={"kind": CommandKind.MOVE, "seed": 0}),
    Reset: make_encoder("Command", fixed={"kind": CommandKind.RESET, "step": 0, "action": _NOTHING}),
    Hold: make_encoder("Command", fixed={"kind": CommandKind.HOLD, "seed": 0, "action": _NOTHING}),
}
_RECEIPTS: dict[tuple[type, bool], Callable[..., bytes]] = {  # by type, and whether it is about a step
    (Ready, False): make_encoder("Receipt", fixed={"kind": ReceiptKind.READY, "step": 0, "reason": ""}),
    (Receipt, True): make_encoder("Receipt", fixed={"kind": ReceiptKind.STEP, "reason": ""}),
    (Receipt, False): make_encoder("Receipt", fixed={"kind": ReceiptKind.EPISODE, "step": 0, "reason": ""}),
    (Failed, False): make_encoder("Receipt", fixed={"kind": ReceiptKind.FAILED, "step": 0}),
}


def _make_end(steps: int, augmentations: int, episode_return: float, **attributes: Any) -> EpisodeEnd:
    return EpisodeEnd(Episode(steps=[], **attributes), steps, augmentations, episode_return)


def _make_command(
    kind: CommandKind, episode: int, step: int, seed: int, action: FloatArray, run: str
) -> Reset | Move | Hold:
    match kind:
        case CommandKind.MOVE:
            return Move(episode, step, action, run)
        case CommandKind.RESET:
            return Reset(episode, seed, run)
        case CommandKind.HOLD:
            return Hold(episode, step, run)


def _make_receipt(
    kind: ReceiptKind, episode: int, step: int, reason: str, time_ns: int, token: str
) -> Ready | Receipt | Failed:
    match kind:
        case ReceiptKind.STEP:
            return Receipt(episode, step, time_ns, token)
        case ReceiptKind.EPISODE:
            return Receipt(episode, None, time_ns, token)
        case ReceiptKind.READY:
            return Ready(episode, token)
        case ReceiptKind.FAILED:
            return Failed(reason, episode, token)


decode_episode = make_decoder(  # the episode has no steps yet
    "Episode", _make_end, {**get_type_hints(Episode), **get_type_hints(EpisodeEnd)}, _EPISODE_NAMES
)
decode_command = make_decoder("Command", _make_command, get_type_hints(_make_command), _RUN)
decode_frame: Callable[[bytes], str] = make_decoder(  # of the positions in an observation
    "Observation", lambda frame_id: frame_id, {"frame_id": str}, {"header.frame_id": "frame_id"}
)
decode_receipt = make_decoder(
    "Receipt", _make_receipt, get_type_hints(_make_receipt), {"header": "time_ns", "header.frame_id": "token"}
)


def decode_query(data: bytes | memoryview, size: int | None = None) -> Query:
    """Return a question; `size` is what the receiver expects, where it knows."""
    query = _read_query(data)
    if size is not None and query.values.size != size:
        raise MessageError("values", f"{query.values.size} entries long", f"{size}")
    return query


def with_run(message: str, decode: Callable[[bytes], Content]) -> Callable[[bytes], tuple[Content, str]]:
    """Return a reader of steps or ends of episodes that gives the token of the run, too, which is no part of them."""
    read_run = make_decoder(message, lambda run: str(run), {"run": str}, _RUN)
    return lambda data: (decode(data), read_run(data))


def encode_command(command: Reset | Move | Hold, time_ns: int, run: str = "") -> bytes:
    """Return a command given at `time_ns` by the arbiter of a run."""
    return _COMMANDS[type(command)](command, time_ns, run)


def encode_receipt(receipt: Ready | Receipt | Failed, time_ns: int) -> bytes:
    """Return what the recorder says at `time_ns`."""
    about_step = isinstance(receipt, Receipt) and receipt.step is not None
    token = receipt.token if isinstance(receipt, Ready) else receipt.run
    return _RECEIPTS[type(receipt), about_step](receipt, time_ns, token)

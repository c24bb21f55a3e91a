"""Records to send, by hand and by chance."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lift_ros.collection.exchange import (
    Failed,
    Hold,
    Model,
    Move,
    Observation,
    Proposal,
    Query,
    Ready,
    Receipt,
    Refusal,
    Reset,
)
from lift_ros.collection.records import Episode, Mode, Outcome, Rejection, Source, Step, same
from lift_ros.messages import records
from lift_ros.messages.records import EpisodeEnd

NOW = 1_794_800_000_123_456_789


def vectors(limit: int = 9, **options: Any) -> st.SearchStrategy[Any]:
    return arrays(np.float64, st.integers(0, limit), elements=st.floats(**options))


FINITE = {"allow_nan": False, "allow_infinity": False}
finite, wishes = vectors(**FINITE), vectors()
u32, u64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
numbers = st.floats(allow_infinity=False)
shares = st.floats(0, 1)
hashes = st.text("0123456789abcdef", max_size=64)
times = st.integers(0, (2**31 - 1) * 10**9)
pictures = st.none() | st.tuples(st.integers(1, 4), st.integers(1, 4), st.just(3)).flatmap(
    lambda shape: arrays(np.uint8, shape)
)
no_nul = st.text(max_size=80).filter(lambda text: "\0" not in text)

observations = st.builds(
    Observation,
    *(u32, u32, finite, finite, finite, vectors(70, **FINITE), numbers, st.booleans()),
    *(st.sampled_from(Refusal), pictures, times),
)
queries = st.builds(Query, u32, u32, u64, finite, st.booleans(), st.sampled_from(Mode), pictures)
proposals = st.builds(Proposal, u32, u32, st.sampled_from(Source), wishes, hashes, times)
commands = st.builds(Move, u32, u32, wishes) | st.builds(Reset, u32, u64) | st.builds(Hold, u32, u32)
receipts = (
    st.builds(Ready, u32) | st.builds(Failed, no_nul, u32) | st.builds(Receipt, u32, st.none() | u32, st.just(NOW))
)
steps = st.builds(
    Step,
    *(u32, u32, times, finite, finite, st.sampled_from(Source), finite, numbers, wishes, wishes),
    *(st.sampled_from(Rejection), shares | st.just(math.nan), shares, u32, hashes, pictures),
)
episodes = st.builds(
    Episode,
    *(u32, u64, st.sampled_from(Mode), st.sampled_from(Outcome), st.just([]), finite, no_nul, finite, pictures),
    *(finite, vectors(70, **FINITE), times, times),
)
ends = st.builds(EpisodeEnd, episodes, u32, u32, numbers)
models = st.builds(Model, no_nul, hashes, hashes, u32)

# Per message: what is sent, how it is written, how it is read.
CASES: dict[str, tuple[st.SearchStrategy[Any], Callable[[Any], bytes], Callable[[bytes], Any]]] = {
    "Observation": (observations, records.encode_observation, records.decode_observation),
    "Query": (queries, lambda query: records.encode_query(query, NOW), records.decode_query),
    "Proposal": (proposals, records.encode_proposal, records.decode_proposal),
    "Command": (commands, lambda command: records.encode_command(command, NOW), records.decode_command),
    "Receipt": (receipts, lambda receipt: records.encode_receipt(receipt, NOW), records.decode_receipt),
    "Step": (steps, records.encode_step, records.decode_step),
    "Episode": (ends, records.encode_episode, records.decode_episode),
    "Model": (models, lambda model: records.encode_model(model, NOW), records.decode_model),
}


def agree(first: Any, second: Any) -> bool:
    """Whether two records agree bit for bit."""
    return type(first) is type(second) and all(
        same(getattr(first, field.name), getattr(second, field.name)) for field in dataclasses.fields(first)
    )


def make_step(**changes: Any) -> Step:
    fields: dict[str, Any] = {
        "episode": 3,
        "index": 0,
        "time_ns": NOW,
        "observation": np.array([0.1, -0.2, 0.3]),
        "action": np.array([0.5, 0.25]),
        "source": Source.AUGMENTOR,
        "position": np.array([1.0, 2.0]),
        "reward": -0.75,
        "logging_proposal": np.array([0.1, 0.0]),
        "augmentor_proposal": np.array([0.5, 0.25]),
        "draw": 0.25,
        "p": 0.5,
        "augmentations_left": 19,
        "model_hash": "ab" * 32,
    }
    return Step(**fields | changes)

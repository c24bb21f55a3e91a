from __future__ import annotations

import numpy as np
from fakes import Creep, FloatArray, Jitter, Jump

from lift_ros.collection.answerer import Answerer
from lift_ros.collection.exchange import Query
from lift_ros.collection.records import Mode, Source


def query(step: int, handoff: bool = False, episode: int = 0, seed: int = 1, mode: Mode = Mode.COLLECT) -> Query:
    return Query(episode, step, seed, np.array([0.5, 0.5]), handoff, mode)


def test_a_policy_is_reset_before_it_answers_the_query_with_handoff() -> None:
    policy = Creep()
    answerer = Answerer(policy, Source.LOGGING_POLICY)
    answerer.answer(query(0, handoff=True))
    answerer.answer(query(1))
    assert (policy.resets, policy.answers) == (1, 2)
    answerer.answer(query(2, handoff=True))
    assert (policy.resets, policy.answers) == (2, 1), "forgot, then answered once"


def test_the_answer_is_addressed_like_the_question() -> None:
    proposal = Answerer(Jump(), Source.AUGMENTOR).answer(query(4, episode=7), time_ns=9)
    assert proposal is not None
    assert (proposal.episode, proposal.step, proposal.source, proposal.time_ns) == (7, 4, Source.AUGMENTOR, 9)
    assert proposal.model_hash == "abc"


def test_the_logging_policy_does_not_answer_in_evaluate() -> None:
    policy = Creep()
    assert Answerer(policy, Source.LOGGING_POLICY).answer(query(0, mode=Mode.EVALUATE)) is None
    assert policy.answers == 0


def test_randomness_follows_the_episodes_seed() -> None:
    answers = []
    for seed in (1, 2, 1):
        proposal = Answerer(Jitter(), Source.AUGMENTOR).answer(query(0, seed=seed))
        assert proposal is not None
        answers.append(proposal.action.tolist())
    assert answers[0] == answers[2] != answers[1]


def test_whoever_joins_in_the_middle_of_an_episode_is_seeded_all_the_same() -> None:
    assert Answerer(Jitter(), Source.AUGMENTOR).answer(query(5)) is not None


def test_an_episode_run_again_begins_anew() -> None:
    answerer = Answerer(Jitter(), Source.AUGMENTOR)
    first, again = answerer.answer(query(0)), answerer.answer(query(0))
    assert first is not None
    assert again is not None
    assert first.action.tolist() == again.action.tolist()


def test_a_policy_cannot_change_the_record_through_its_observation_or_action() -> None:
    class Meddler:
        def __init__(self) -> None:
            self.action = np.zeros(2)

        def reset(self) -> None:
            pass

        def act(self, observation: FloatArray) -> FloatArray:
            observation *= 0
            self.action += 1
            return self.action

    answerer, question = Answerer(Meddler(), Source.LOGGING_POLICY), query(0)
    first = answerer.answer(question)
    answerer.answer(query(1))
    assert first is not None
    assert question.values.tolist() == [0.5, 0.5]
    assert first.action.tolist() == [1, 1]

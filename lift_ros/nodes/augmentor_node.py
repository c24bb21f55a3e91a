"""Executable `augmentor`."""

from __future__ import annotations

import os
from typing import Any

import lift_ros.msg as msg
from lift_ros.collection.answerer import Answerer
from lift_ros.collection.exchange import Model, Query
from lift_ros.collection.records import Source
from lift_ros.errors import UserError
from lift_ros.graph import qos
from lift_ros.messages.records import decode_model
from lift_ros.nodes.diagnostics import Status
from lift_ros.nodes.policy import PolicyNode
from lift_ros.policies.augmentations import UncertaintyModel
from lift_ros.policies.learned import LearnedPolicy, check_folder, load_fitting_model
from lift_ros.policies.protocol import Policy
from lift_ros.training.runs import fit_to_runs


class Augmentor(PolicyNode):
    """The learned policy that may act instead of the logging policy."""

    executable = "augmentor"
    summary = "answers queries with the latest valid model, or without a proposal while there is none"
    source = Source.AUGMENTOR

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.set_status(Status.NO_MODEL)
        policy = self.make_policy()
        self._unfitted = policy if isinstance(policy, UncertaintyModel) else None
        if self._unfitted is not None:
            if not self.value("data_episodes"):
                self._fit(self._unfitted)
        elif policy is not None:
            self.serve(policy)
        elif self.value("model"):
            self._swap(self._load(self.value("model")))
        self.connect()
        if policy is None:
            self.listen(msg.Model, qos.MODEL, decode_model, self._on_model, qos.LATCHED)

    def _on_query(self, query: Query) -> None:
        # A query of an episode says that all before it are recorded, even to a node that was just restarted.
        if self._unfitted is not None and query.episode >= self.value("data_episodes"):
            try:
                self._fit(self._unfitted)
            except UserError as error:
                self.set_status(Status.BAD_MODEL, str(error))
        super()._on_query(query)

    def _fit(self, model: UncertaintyModel) -> None:
        fit_to_runs(model, list(filter(None, self.value("data").split(os.pathsep))), self.value("data_episodes"))
        self._unfitted = None
        self.serve(model)

    def _on_model(self, model: Model) -> None:
        """Check the announced model whole; queries wait meanwhile, so the swap falls between two steps."""
        try:
            check_folder(model.path, self.value("model_folders"))
            policy = self._load(model.path, model.sha256)
        except UserError as error:
            self.diagnostics.count("models refused")
            self.get_logger().error(f"refused a model, the one before keeps serving: {error}")
            self.set_status(Status.BAD_MODEL, str(error))
            return
        self._swap(policy)

    def _load(self, path: str, announced: str | None = None) -> LearnedPolicy:
        scenario = self.scenario
        return load_fitting_model(path, scenario.name, scenario.limits, announced, scenario.model_sight)

    def make_answerer(self, policy: Policy) -> Answerer:
        """Return what answers; in mode assist it heeds what the model's data cover."""
        return Answerer(policy, self.source, watches_coverage=self.value("assist_coverage"))

    def _swap(self, policy: LearnedPolicy) -> None:
        self.diagnostics.count("models")
        self.diagnostics.facts["model"] = policy.hash
        self.get_logger().info(f"serves model {policy.hash[:12]} ({policy.algorithm})")
        self.serve(policy)


main = Augmentor.main

"""Who proposes actions: `protocol.Policy` says what a policy is, `loading.make_policy` makes one from its name.

Logging policies are `coordinate_walk`, or any script through `routines`; `displacement.DirectPolicy`, `secant` and
`optimal` are yardsticks; `augmentations` are those of the paper; `learned` serves a model, whose file `model_file`
reads and writes.
"""

"""Algorithm 2 without ROS: who acts in each step, and what is recorded of it.

`records` holds what a step and an episode are, `arbiter` the state machine with all of its decisions, `exchange` what
goes in and out of it, `loop` the in-process loop around it (`collect`), `workers` the same on several processes.
"""

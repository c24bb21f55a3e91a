"""Which nodes run with what, and how they are brought up and watched; imports rclpy nowhere but in `qos`.

`table` says which nodes a run needs, `parameters` what each of them can be told, `qos` and `transport` how they talk;
`run` and `supervisor` start them for `lift run`, `launch_description` for `ros2 launch`, `live_view` shows the run.
"""

"""The subcommands of `lift`, one module `NAME_command` each with `configure(parser)` and `run(arguments)`.

They read arguments, call the other folders and print; `lift_ros.cli` holds the table of them and loads only one.
"""

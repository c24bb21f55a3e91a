"""Web pages for people: the operator's, which `lift run --page` serves, and that of `lift view`; no ROS."""

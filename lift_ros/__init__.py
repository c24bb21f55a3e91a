"""LIFT for ROS 2: turn the logs of a scripted positioning routine into a better controller."""

from pkgutil import extend_path

__version__ = "0.1.0"

# In a checkout the compiled messages lie in the environment, beside this folder instead of in it.
__path__ = extend_path(__path__, __name__)

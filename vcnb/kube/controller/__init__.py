"""``vcnb controller``: the controllers as a process against a Kubernetes cluster, one of several that leads."""

from vcnb.kube.controller.election import Election, LeaseLost, LeaseTimes
from vcnb.kube.controller.process import ControllerOptions, ControllerProcess
from vcnb.kube.controller.volcano import VolcanoActive, volcano_holder

__all__ = [
    "ControllerOptions",
    "ControllerProcess",
    "Election",
    "LeaseLost",
    "LeaseTimes",
    "VolcanoActive",
    "volcano_holder",
]

"""Custom resource definitions, generated from ``vcnb.resources.models``."""

from vcnb.kube.crds.definitions import CUSTOM_KINDS, custom_resource_definition, custom_resource_definitions

__all__ = ["CUSTOM_KINDS", "custom_resource_definition", "custom_resource_definitions"]

"""Containers and all that belongs to one: environment, probes, hooks, ports, resources, mounts."""

from __future__ import annotations

from typing import Annotated

from vcnb.resources.models.base import Amount, AmountMap, Int32, Int64, IntOrText, Model, UniqueBy
from vcnb.resources.models.security import NameValue, SecurityContext

__all__ = [
    "Container",
    "ContainerPort",
    "EnvFrom",
    "EnvVar",
    "EnvVarSource",
    "EphemeralContainer",
    "ExecAction",
    "FieldRef",
    "FileKeyRef",
    "GrpcAction",
    "HttpGetAction",
    "KeyRef",
    "Lifecycle",
    "LifecycleHandler",
    "OptionalRef",
    "Probe",
    "ResizePolicy",
    "ResourceClaim",
    "ResourceFieldRef",
    "ResourceRequirements",
    "RestartExitCodes",
    "RestartRule",
    "SleepAction",
    "TcpSocketAction",
    "VolumeDevice",
    "VolumeMount",
]


class KeyRef(Model):
    """One key of a ConfigMap or Secret."""

    key: str
    name: str | None = None
    optional: bool | None = None


class FieldRef(Model):
    """A field of the pod itself, such as ``metadata.name``."""

    field_path: str
    api_version: str | None = None


class FileKeyRef(Model):
    """One key of an environment file in a volume."""

    key: str
    path: str
    volume_name: str
    optional: bool | None = None


class ResourceFieldRef(Model):
    """A request or limit of a container."""

    resource: str
    container_name: str | None = None
    divisor: Amount | None = None


class EnvVarSource(Model):
    """Where an environment variable takes its value from."""

    config_map_key_ref: KeyRef | None = None
    field_ref: FieldRef | None = None
    file_key_ref: FileKeyRef | None = None
    resource_field_ref: ResourceFieldRef | None = None
    secret_key_ref: KeyRef | None = None


class EnvVar(Model):
    """An environment variable. ``value`` is text, numbers too: ``"1"``."""

    name: str
    value: str | None = None
    value_from: EnvVarSource | None = None


class OptionalRef(Model):
    """A ConfigMap or Secret that may be missing."""

    name: str | None = None
    optional: bool | None = None


class EnvFrom(Model):
    """All keys of a ConfigMap or Secret as environment variables."""

    config_map_ref: OptionalRef | None = None
    prefix: str | None = None
    secret_ref: OptionalRef | None = None


class ExecAction(Model):
    """A command run in the container."""

    command: list[str] | None = None


class HttpGetAction(Model):
    """A GET request to the container."""

    port: IntOrText
    host: str | None = None
    http_headers: list[NameValue] | None = None
    path: str | None = None
    scheme: str | None = None


class SleepAction(Model):
    """A pause."""

    seconds: Int64


class TcpSocketAction(Model):
    """A TCP connection to the container."""

    port: IntOrText
    host: str | None = None


class LifecycleHandler(Model):
    """What is done after start or before stop."""

    exec: ExecAction | None = None
    http_get: HttpGetAction | None = None
    sleep: SleepAction | None = None
    tcp_socket: TcpSocketAction | None = None


class Lifecycle(Model):
    """Hooks of a container."""

    post_start: LifecycleHandler | None = None
    pre_stop: LifecycleHandler | None = None
    stop_signal: str | None = None


class GrpcAction(Model):
    """A gRPC health check."""

    port: Int32
    service: str | None = None


class Probe(Model):
    """A periodic check of a container."""

    exec: ExecAction | None = None
    failure_threshold: Int32 | None = None
    grpc: GrpcAction | None = None
    http_get: HttpGetAction | None = None
    initial_delay_seconds: Int32 | None = None
    period_seconds: Int32 | None = None
    success_threshold: Int32 | None = None
    tcp_socket: TcpSocketAction | None = None
    termination_grace_period_seconds: Int64 | None = None
    timeout_seconds: Int32 | None = None


class ContainerPort(Model):
    """A port that the container listens on."""

    container_port: Int32
    host_ip: str | None = None
    host_port: Int32 | None = None
    name: str | None = None
    protocol: str | None = None


class ResizePolicy(Model):
    """What a change of one resource does to the running container."""

    resource_name: str
    restart_policy: str


class ResourceClaim(Model):
    """A claim of the pod that the container uses."""

    name: str
    request: str | None = None


class ResourceRequirements(Model):
    """Requests and limits, by resource name."""

    claims: Annotated[list[ResourceClaim], UniqueBy("name")] | None = None
    limits: AmountMap | None = None
    requests: AmountMap | None = None


class RestartExitCodes(Model):
    """Exit codes that a restart rule is for."""

    operator: str
    values: Annotated[list[Int32], UniqueBy()] | None = None


class RestartRule(Model):
    """What to do on some exit codes."""

    action: str
    exit_codes: RestartExitCodes | None = None


class VolumeDevice(Model):
    """A raw block device in the container."""

    device_path: str
    name: str


class VolumeMount(Model):
    """A volume of the pod in the file system of the container."""

    mount_path: str
    name: str
    mount_propagation: str | None = None
    read_only: bool | None = None
    recursive_read_only: str | None = None
    sub_path: str | None = None
    sub_path_expr: str | None = None


class Container(Model):
    """One container of a pod."""

    name: str
    args: list[str] | None = None
    command: list[str] | None = None
    env: Annotated[list[EnvVar], UniqueBy("name", in_pods=False)] | None = None
    env_from: list[EnvFrom] | None = None
    image: str | None = None
    image_pull_policy: str | None = None
    lifecycle: Lifecycle | None = None
    liveness_probe: Probe | None = None
    ports: (
        Annotated[
            list[ContainerPort], UniqueBy("containerPort", "protocol", in_pods=False, defaults={"protocol": "TCP"})
        ]
        | None
    ) = None
    readiness_probe: Probe | None = None
    resize_policy: list[ResizePolicy] | None = None
    resources: ResourceRequirements | None = None
    restart_policy: str | None = None
    restart_policy_rules: list[RestartRule] | None = None
    security_context: SecurityContext | None = None
    startup_probe: Probe | None = None
    stdin: bool | None = None
    stdin_once: bool | None = None
    termination_message_path: str | None = None
    termination_message_policy: str | None = None
    tty: bool | None = None
    volume_devices: Annotated[list[VolumeDevice], UniqueBy("devicePath")] | None = None
    volume_mounts: Annotated[list[VolumeMount], UniqueBy("mountPath")] | None = None
    working_dir: str | None = None


class EphemeralContainer(Model):
    """A container added to a running pod for debugging."""

    name: str
    args: list[str] | None = None
    command: list[str] | None = None
    env: Annotated[list[EnvVar], UniqueBy("name", in_pods=False)] | None = None
    env_from: list[EnvFrom] | None = None
    image: str | None = None
    image_pull_policy: str | None = None
    lifecycle: Lifecycle | None = None
    liveness_probe: Probe | None = None
    ports: (
        Annotated[
            list[ContainerPort], UniqueBy("containerPort", "protocol", in_pods=False, defaults={"protocol": "TCP"})
        ]
        | None
    ) = None
    readiness_probe: Probe | None = None
    resize_policy: list[ResizePolicy] | None = None
    resources: ResourceRequirements | None = None
    restart_policy: str | None = None
    restart_policy_rules: list[RestartRule] | None = None
    security_context: SecurityContext | None = None
    startup_probe: Probe | None = None
    stdin: bool | None = None
    stdin_once: bool | None = None
    target_container_name: str | None = None
    termination_message_path: str | None = None
    termination_message_policy: str | None = None
    tty: bool | None = None
    volume_devices: Annotated[list[VolumeDevice], UniqueBy("devicePath")] | None = None
    volume_mounts: Annotated[list[VolumeMount], UniqueBy("mountPath")] | None = None
    working_dir: str | None = None

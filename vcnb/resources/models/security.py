"""Security settings of pods and containers."""

from __future__ import annotations

from vcnb.resources.models.base import Int64, Model

__all__ = [
    "Capabilities",
    "LocalProfile",
    "NameValue",
    "PodSecurityContext",
    "SeLinuxOptions",
    "SecurityContext",
    "WindowsOptions",
]


class NameValue(Model):
    """A name with its value: an HTTP header, a sysctl."""

    name: str
    value: str


class LocalProfile(Model):
    """A seccomp or AppArmor profile: ``type`` RuntimeDefault, Unconfined or Localhost."""

    type: str
    localhost_profile: str | None = None


class Capabilities(Model):
    """Linux capabilities to add and drop."""

    add: list[str] | None = None
    drop: list[str] | None = None


class SeLinuxOptions(Model):
    """The SELinux label of a container."""

    level: str | None = None
    role: str | None = None
    type: str | None = None
    user: str | None = None


class WindowsOptions(Model):
    """Settings of Windows containers."""

    gmsa_credential_spec: str | None = None
    gmsa_credential_spec_name: str | None = None
    host_process: bool | None = None
    run_as_user_name: str | None = None


class SecurityContext(Model):
    """Security settings of one container."""

    allow_privilege_escalation: bool | None = None
    app_armor_profile: LocalProfile | None = None
    capabilities: Capabilities | None = None
    privileged: bool | None = None
    proc_mount: str | None = None
    read_only_root_filesystem: bool | None = None
    run_as_group: Int64 | None = None
    run_as_non_root: bool | None = None
    run_as_user: Int64 | None = None
    se_linux_options: SeLinuxOptions | None = None
    seccomp_profile: LocalProfile | None = None
    windows_options: WindowsOptions | None = None


class PodSecurityContext(Model):
    """Security settings of all containers of a pod."""

    app_armor_profile: LocalProfile | None = None
    fs_group: Int64 | None = None
    fs_group_change_policy: str | None = None
    run_as_group: Int64 | None = None
    run_as_non_root: bool | None = None
    run_as_user: Int64 | None = None
    se_linux_change_policy: str | None = None
    se_linux_options: SeLinuxOptions | None = None
    seccomp_profile: LocalProfile | None = None
    supplemental_groups: list[Int64] | None = None
    supplemental_groups_policy: str | None = None
    sysctls: list[NameValue] | None = None
    windows_options: WindowsOptions | None = None

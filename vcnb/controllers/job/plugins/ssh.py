"""Plugin ``ssh``: the pods of a Job may log in to each other without a password.

One Secret ``J-ssh`` holds a key pair made for the Job, ``authorized_keys`` that accepts it, and a client ``config`` that
names every pod; all containers get it as their ``.ssh`` directory. The plugin starts no sshd and opens no port.
"""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeAlias

from vcnb.controllers.job.plugins.flags import Flag
from vcnb.controllers.job.plugins.layout import Layout, layout_of
from vcnb.controllers.job.plugins.objects import find, remove
from vcnb.controllers.job.plugins.plugin import (
    DEFAULT_BEHAVIOUR,
    Plugin,
    PluginApi,
    PluginBehaviour,
    edit_containers,
    metadata_for,
    with_mount,
)
from vcnb.resources.kinds import SECRET
from vcnb.store.protocol import Obj

__all__ = ["KeyMaker", "KeyPair", "SshPlugin", "client_config", "generate_keys"]

DEFAULT_PATH = "/root/.ssh"
DEFAULT_PORT = 22
KEY_BITS = 2048
SUB_PATH = ".ssh"
FILES = ("id_rsa", "id_rsa.pub", "authorized_keys", "config")

MODE_OWNER = 0o600
MODE_EVERYONE = 0o644


class KeyPair(NamedTuple):
    """Both halves of a key as text: PEM (PKCS#1), and the one line that OpenSSH reads."""

    private: str
    public: str


KeyMaker: TypeAlias = Callable[[], Awaitable[KeyPair]]
"""Makes a key pair. Whoever runs the plugin on a loop that must not stand still hands in one that uses a thread."""


def generate_keys() -> KeyPair:
    """A fresh RSA pair of 2048 bits. Takes some tens of milliseconds."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=KEY_BITS)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return KeyPair(private.decode(), public.decode() + "\n")


async def _generate_here() -> KeyPair:
    return generate_keys()


class SshPlugin(Plugin):
    """See the module's text; ``J`` is the Job's name. ``make_keys`` makes the pair when none is given."""

    name: ClassVar[str] = "ssh"
    flags: ClassVar[tuple[Flag, ...]] = (
        Flag("ssh-key-file-path", DEFAULT_PATH, "directory in the containers"),
        Flag("ssh-private-key", "", "this private key instead of a fresh one"),
        Flag("ssh-public-key", "", "its public half; only read together with a private key"),
        Flag("ssh-port", DEFAULT_PORT, "port of sshd in the client configuration"),
    )

    def __init__(
        self,
        args: Sequence[str] | None = (),
        behaviour: PluginBehaviour = DEFAULT_BEHAVIOUR,
        make_keys: KeyMaker = _generate_here,
    ) -> None:
        super().__init__(args, behaviour)
        self.make_keys = make_keys

    @property
    def path(self) -> str:
        """Where the files are mounted."""
        return self.arguments.text("ssh-key-file-path")

    @property
    def port(self) -> int:
        """The port of sshd; a number that is no port counts as 22."""
        port = self.arguments.number("ssh-port")
        return port if 0 < port <= 65535 else DEFAULT_PORT

    async def on_job_add(self, job: Obj, controlled: dict[str, str], api: PluginApi) -> None:
        if self.registered(controlled) and not self.behaviour.restore_objects:
            return
        layout = layout_of(job)
        full = self.behaviour.ssh_port_of_full_names and self.port != DEFAULT_PORT
        key = ("ssh-config", self.port, full)
        config = layout.derived(key, lambda: client_config(layout, self.port, full_names=full))
        found = await find(api, SECRET, secret_name(layout), job, check_owner=self.behaviour.check_owner)
        if found is None:
            metadata = metadata_for(job, secret_name(layout))
            data = _secret_data(await self._keys(), config)
            await api.create(
                {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data}
            )
        elif (found.get("data") or {}).get("config") != _encode(config):
            data = {**(found.get("data") or {}), "config": _encode(config)}
            if not self.behaviour.keep_ssh_keys:
                data = _secret_data(await self._keys(), config)
            await api.update({**found, "data": data})
        controlled[self.key] = self.name

    async def on_job_update(self, job: Obj, controlled: dict[str, str], api: PluginApi) -> None:
        if self.behaviour.restore_objects:
            # Pods of a scaled or restarted Job need the Secret, and the new hosts in its configuration.
            await self.on_job_add(job, controlled, api)

    def on_pod_create(self, pod: dict[str, Any], job: Obj) -> None:
        name = secret_name(layout_of(job))
        items = [{"key": file, "path": f"{SUB_PATH}/{file}"} for file in FILES]
        secret = {"secretName": name, "items": items, "defaultMode": self._mode(pod)}
        spec = pod["spec"]
        spec["volumes"] = [*(spec.get("volumes") or ()), {"name": name, "secret": secret}]
        mount = {"name": name, "mountPath": self.path, "subPath": SUB_PATH}
        wins = self.behaviour.template_wins
        edit_containers(pod, lambda container: with_mount(container, mount, template_wins=wins), init=True)

    async def on_job_delete(self, job: Obj, controlled: dict[str, str], api: PluginApi) -> None:
        if not self.registered(controlled) and not self.behaviour.restore_objects:
            return
        await remove(api, SECRET, secret_name(layout_of(job)), job, check_owner=self.behaviour.check_owner)
        controlled.pop(self.key, None)

    async def _keys(self) -> KeyPair:
        private = self.arguments.text("ssh-private-key")
        if private:
            return KeyPair(private, self.arguments.text("ssh-public-key"))
        return await self.make_keys()

    def _mode(self, pod: Mapping[str, Any]) -> int:
        """Who may read the files, which belong to root.

        OpenSSH refuses a key of the caller's own that others can read, so root needs 0600; anybody else can only read
        0644. Volcano tells the two apart by the path alone.
        """
        user = _user_of(pod) if self.behaviour.ssh_mode_follows_user else None
        root = self.path == DEFAULT_PATH if user is None else user == 0
        return MODE_OWNER if root else MODE_EVERYONE


def _user_of(pod: Mapping[str, Any]) -> int | None:
    """The one user id that all containers of a pod run as by their manifest; None when it is not given or not one."""
    spec = pod["spec"]
    default = (spec.get("securityContext") or {}).get("runAsUser")
    users = {(c.get("securityContext") or {}).get("runAsUser", default) for c in spec.get("containers") or ()}
    return users.pop() if len(users) == 1 else None


def secret_name(layout: Layout) -> str:
    """The name of the Secret and of the volume: ``J-ssh``."""
    return f"{layout.name}-ssh"


def client_config(layout: Layout, port: int, *, full_names: bool = False) -> str:
    """The OpenSSH client configuration: no questions about host keys, and one entry per host of the Job.

    An entry holds for the name as it is typed: with ``full_names`` for ``hostname.subdomain``, too.
    """
    lines = ["StrictHostKeyChecking no", "UserKnownHostsFile /dev/null"]
    for task in layout.tasks:
        for hostname, host in zip(task.hostnames, task.hosts, strict=True):
            typed = f"{hostname} {host}" if full_names else hostname
            lines += [f"Host {typed}", f"  HostName {host}", f"  Port {port}"]
    return "\n".join(lines) + "\n"


def _secret_data(keys: KeyPair, config: str) -> dict[str, str]:
    contents = (keys.private, keys.public, keys.public, config)
    return {file: _encode(text) for file, text in zip(FILES, contents, strict=True)}


def _encode(text: str) -> str:
    return base64.b64encode(text.encode()).decode()

"""Where the API server is and who we are there: from a kubeconfig, or from the pod that this process runs in.

The official client reads both, with everything that may stand there: tokens, client certificates, exec plugins, OIDC. A
login is taken again when the server no longer accepts it, so a renewed token or a changed file is used at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from vcnb.errors import Unauthorized, Unreachable

__all__ = ["Login", "log_in"]

_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_PLUGIN_SECONDS = 120.0
"""How long an exec plugin may take; some wait for a person."""


@dataclass(frozen=True)
class Login:
    """One reading of the credentials.

    ``configuration`` is a ``kubernetes.aio.client.Configuration``; ``namespace`` the context's default one; ``where`` names
    the server in errors: its URL and the context.
    """

    configuration: Any
    server: str
    namespace: str
    where: str

    @property
    def proxy(self) -> str | None:
        """The proxy to reach the server by: the kubeconfig's, else that of HTTPS_PROXY, unless NO_PROXY excepts the server."""
        if self.configuration.proxy:
            return str(self.configuration.proxy)
        parts = urlsplit(self.server)
        host = parts.hostname or ""
        found = getproxies()
        proxy = found.get(parts.scheme) or found.get("all")
        return None if proxy is None or proxy_bypass(host) or _in_networks(host, found.get("no", "")) else proxy

    async def headers(self) -> dict[str, str]:
        """What proves who we are, for one request; a service account's token is read again every minute."""
        found = {}
        for setting in (await self.configuration.auth_settings()).values():
            if setting["value"]:
                found[setting["key"]] = setting["value"]
        return found


def _in_networks(host: str, excepted: str) -> bool:
    """Whether NO_PROXY names a network (``10.0.0.0/8``) that an address lies in, as Go's clients read it."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    for item in excepted.split(","):
        with contextlib.suppress(ValueError):
            if address in ipaddress.ip_network(item.strip(), strict=False):
                return True
    return False


async def log_in(context: str | None = None, kubeconfig: str | None = None) -> Login:
    """Read the credentials of a context of a kubeconfig (None: the current one), or those of this pod.

    ``kubeconfig`` is a path; without it ``KUBECONFIG`` (several paths joined as in kubectl), then ``~/.kube/config``, then
    the pod's service account. Raises Unreachable when there is none of these, or what is there cannot be used, and
    Unauthorized when an exec plugin or an identity provider gives no credentials.
    """
    paths = _kubeconfig_paths(kubeconfig)
    if paths:
        return await _from_kubeconfig(paths, context)
    if context is None and os.environ.get("KUBERNETES_SERVICE_HOST"):
        return _from_pod()
    if kubeconfig:
        raise Unreachable(
            f"there is no kubeconfig {kubeconfig}; name an existing one, or leave it out for the usual place"
        )
    raise Unreachable(
        "there is no kubeconfig: KUBECONFIG is not set (or names no file), and ~/.kube/config does not exist; ask the"
        " administrator of the cluster for one, and save it there"
    )


def _kubeconfig_paths(kubeconfig: str | None) -> str:
    """The kubeconfigs that exist, joined; "" for none."""
    named = kubeconfig or os.environ.get("KUBECONFIG") or str(Path("~/.kube/config"))
    found = [path for path in named.split(os.pathsep) if path and Path(path).expanduser().is_file()]
    return os.pathsep.join(found)


async def _from_kubeconfig(paths: str, context: str | None) -> Login:
    import yaml
    from kubernetes.aio.config import kube_config
    from kubernetes.aio.config.config_exception import ConfigException

    library: Any = kube_config  # parts of it have no types
    try:
        merger = library.KubeConfigMerger(paths)
        loader = library.KubeConfigLoader(
            merger.config,
            active_context=context,
            config_base_path=None,
            config_persister=lambda _: merger.save_changes(),
        )
        active = loader.current_context
        configuration = await _loaded(loader)
    except (ConfigException, OSError, yaml.YAMLError, AttributeError, TypeError, KeyError, ValueError) as error:
        known = ", ".join(sorted(_context_names(paths)))
        hint = f"; its contexts: {known}" if known else ""
        raise Unreachable(f"kubeconfig {paths}: {error}{hint}") from None
    name = active["name"]
    namespace = str((active.get("context") or {}).get("namespace") or "default")
    return Login(configuration, configuration.host, namespace, f"{configuration.host} (context {name!r} of {paths})")


async def _loaded(loader: Any) -> Any:
    """A Configuration with the loader's credentials. An exec plugin's complaint becomes the error."""
    configuration = _configuration()
    user = loader._user  # noqa: SLF001 the loader says nowhere else that a plugin is asked
    plugin = user is not None and "exec" in user
    complaints = _Complaints()
    log = logging.getLogger("kubernetes.aio.config.kube_config")
    log.addHandler(complaints)
    try:
        async with asyncio.timeout(_PLUGIN_SECONDS):
            await loader.load_and_set(configuration)
    except TimeoutError:
        raise Unauthorized(f"the kubeconfig's way to log in gave no answer within {_PLUGIN_SECONDS:g} s") from None
    finally:
        log.removeHandler(complaints)
    if plugin and not configuration.api_key and not configuration.cert_file:
        command = " ".join([str(user["exec"]["command"]), *(user["exec"].safe_get("args") or ())])
        said = complaints.text or "it printed neither a token nor a certificate"
        raise Unauthorized(f"the kubeconfig's credential plugin `{command}` gave no credentials: {said}")
    return configuration


def _configuration() -> Any:
    from kubernetes.aio.client import Configuration

    configuration = Configuration()
    # Python 3.13 and later refuse certificates that lack what older authorities never wrote; kubectl takes them.
    configuration.disable_strict_ssl_verification = True
    return configuration


class _Complaints(logging.Handler):
    """Keeps what the official client logs about an exec plugin that fails; it raises nothing."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text = record.getMessage()


def _context_names(paths: str) -> list[str]:
    import yaml

    names = []
    for path in paths.split(os.pathsep):
        try:
            config = yaml.safe_load(Path(path).expanduser().read_text(encoding="utf-8"))
            names += [str(item["name"]) for item in config.get("contexts") or ()]
        except (OSError, yaml.YAMLError, AttributeError, TypeError, KeyError, UnicodeDecodeError):
            continue
    return names


def _from_pod() -> Login:
    from kubernetes.aio import config

    library: Any = config  # parts of it have no types
    configuration = _configuration()
    try:
        library.load_incluster_config(client_configuration=configuration)
    except (library.ConfigException, OSError) as error:
        raise Unreachable(f"this pod's service account cannot be used: {error}") from None
    namespace = _SERVICE_ACCOUNT / "namespace"
    try:
        own = namespace.read_text(encoding="utf-8").strip()
    except OSError:
        own = ""
    where = f"{configuration.host} (this pod's service account)"
    return Login(configuration, configuration.host, own or "default", where)

"""Job plugins: what ``spec.plugins`` of a Job can name, one module each.

Hooks run in the order of :data:`PLUGINS`, whatever the order in the manifest (Volcano's order is random, pass by pass):
``env``, ``svc``, ``ssh``, then the frameworks, and ``hcclrank`` last, so that it sees the ``RANK`` of ``pytorch``.
"""

from __future__ import annotations

from vcnb.controllers.job.plugins.env import EnvPlugin
from vcnb.controllers.job.plugins.hcclrank import HcclrankPlugin
from vcnb.controllers.job.plugins.mpi import MpiPlugin
from vcnb.controllers.job.plugins.plugin import (
    DEFAULT_BEHAVIOUR,
    Plugin,
    PluginApi,
    PluginBehaviour,
    PluginError,
    owner_reference,
)
from vcnb.controllers.job.plugins.pytorch import PytorchPlugin
from vcnb.controllers.job.plugins.ray import RayPlugin
from vcnb.controllers.job.plugins.ssh import KeyMaker, KeyPair, SshPlugin, generate_keys
from vcnb.controllers.job.plugins.svc import SvcPlugin
from vcnb.controllers.job.plugins.tensorflow import TensorflowPlugin
from vcnb.store.protocol import Obj

__all__ = [
    "PLUGINS",
    "KeyMaker",
    "KeyPair",
    "Plugin",
    "PluginApi",
    "PluginBehaviour",
    "PluginError",
    "generate_keys",
    "owner_reference",
    "plugins_of",
]

PLUGINS: dict[str, type[Plugin]] = {
    plugin.name: plugin
    for plugin in (
        EnvPlugin,
        SvcPlugin,
        SshPlugin,
        TensorflowPlugin,
        PytorchPlugin,
        MpiPlugin,
        RayPlugin,
        HcclrankPlugin,
    )
}
"""Every plugin by name, in the order in which their hooks run."""


def plugins_of(
    job: Obj, behaviour: PluginBehaviour = DEFAULT_BEHAVIOUR, *, make_keys: KeyMaker | None = None
) -> list[Plugin]:
    """The plugins that a Job declares, ready to be called, in the order of their hooks.

    Build the list once per pass; it may serve all pods of that pass. ``make_keys`` makes the key pair of ``ssh`` (default:
    here and now). Raises PluginError for a name that no plugin has (admission refuses such a Job).
    """
    declared = (job.get("spec") or {}).get("plugins") or {}
    for name in declared:
        if name not in PLUGINS:
            raise PluginError(f"failed to get plugin {name}; there are {', '.join(PLUGINS)}")
    plugins: list[Plugin] = []
    for name, plugin in PLUGINS.items():
        if name not in declared:
            continue
        if plugin is SshPlugin and make_keys is not None:
            plugins.append(SshPlugin(declared[name], behaviour, make_keys))
        else:
            plugins.append(plugin(declared[name], behaviour))
    return plugins

"""``%load_ext vcnb``: what is registered, and taken away again."""

from __future__ import annotations

from typing import Any

__all__ = ["load", "unload"]

_MAGICS = {"line": ("vcjob", "jobflow", "cache", "vcnb"), "cell": ("vcjob", "jobflow", "jobnode")}


def load(shell: Any) -> None:
    """Register the magics and their completion. Loading again keeps the cluster."""
    from vcnb.notebook import yamlcompletion
    from vcnb.notebook.completion import register
    from vcnb.notebook.magics import VcnbMagics

    shell.register_magics(VcnbMagics)
    register(shell)
    yamlcompletion.register(shell)


def unload(shell: Any) -> None:
    """Take the magics away; the cluster and its jobs stay."""
    from vcnb.notebook import yamlcompletion

    yamlcompletion.unregister(shell)
    for kind, names in _MAGICS.items():
        for name in names:
            shell.magics_manager.magics[kind].pop(name, None)

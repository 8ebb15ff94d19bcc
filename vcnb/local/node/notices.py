"""What the user of a job should know about how its pods run here: one Event each, once per job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from vcnb.local.node.layout import Layout, job_owner
from vcnb.local.node.runtimes import Runtime
from vcnb.store.protocol import Obj

__all__ = ["Notices"]

_NAME_PLUGINS = frozenset({"svc", "ssh", "mpi", "pytorch", "tensorflow", "ray"})


class Notices:
    """Tells each thing once per job, or once per pod for a pod of no job; also after a restart of the agent."""

    def __init__(
        self,
        layout: Layout,
        event: Callable[[Obj, Literal["Normal", "Warning"], str, str], None],
        job: Callable[[str, str], Obj | None],
        runtime: Runtime,
        reason: str,
    ) -> None:
        self._layout = layout
        self._event = event
        self._job = job
        self._runtime = runtime
        self._reason = reason
        self._told: set[tuple[str, str]] = set()

    def pod_starts(self, pod: Obj) -> None:
        """Say what there is to say when a pod is about to start."""
        images = sorted({str(entry["image"]) for entry in pod["spec"].get("containers") or () if entry.get("image")})
        if images:
            self._once(
                pod,
                "Normal",
                "ImageNotPulled",
                f"{', '.join(images)} {'is' if len(images) == 1 else 'are'} not pulled: commands run on this machine's "
                f"own files and programs ({self._runtime.for_pod(pod).name} runtime)",
            )
        if not self._runtime.mounts:
            self._process_limits(pod)

    def _process_limits(self, pod: Obj) -> None:
        subject, _ = self._subject(pod)
        plugins: Mapping[str, Any] = (subject.get("spec") or {}).get("plugins") or {}
        named = sorted(_NAME_PLUGINS & set(plugins)) if subject.get("kind") == "Job" else []
        spec = pod["spec"]
        every = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
        paths = sorted({mount["mountPath"] for entry in every for mount in entry.get("volumeMounts") or ()})
        if named:
            self._once(
                pod,
                "Warning",
                "NoHostNames",
                f"pods run as plain processes ({self._reason}), so the host names that the plugin"
                f"{'s' if len(named) > 1 else ''} {', '.join(named)} give{'' if len(named) > 1 else 's'} them do not resolve; each pod's "
                "address is in $VCNB_POD_IP",
            )
        if paths:
            self._once(
                pod,
                "Warning",
                "NotMounted",
                f"pods run as plain processes ({self._reason}), so nothing is mounted at {', '.join(paths)}; the directory "
                "of each volume is in $VCNB_MOUNT_<VOLUME>",
            )

    def _subject(self, pod: Obj) -> tuple[Obj, str]:
        """Whom the Event is about: the pod's job, or the pod; and the key of its directory."""
        owner = job_owner(pod)
        if owner is None:
            return pod, f"pod-{pod['metadata']['uid']}"
        job = self._job(owner["name"], pod["metadata"].get("namespace") or "default")
        return (job if job is not None and job["metadata"]["uid"] == owner["uid"] else pod), owner["uid"]

    def _once(self, pod: Obj, type: Literal["Normal", "Warning"], reason: str, message: str) -> None:
        subject, key = self._subject(pod)
        if (key, reason) in self._told:
            return
        self._told.add((key, reason))
        if self._layout.tell_once(key, reason):
            self._event(subject, type, reason, message)

    def forget(self, job_uid: str) -> None:
        """The job is gone."""
        self._told = {entry for entry in self._told if entry[0] != job_uid}

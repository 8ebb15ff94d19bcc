"""Where the Job controller differs from Volcano's: one switch per quirk, in one value.

``Behaviour.strict()`` is exactly Volcano's controller, ``Behaviour.default()`` what a user would want. The numbers are
those of docs/differences-quirks.md.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

__all__ = ["Behaviour"]


@dataclass(frozen=True)
class Behaviour:
    """The switches. True means that the quirk is fixed."""

    count_after_kill: bool = True
    """Q1: a kill pass counts the pods that it keeps or does not touch, instead of writing zeros."""
    commit_before_delete: bool = True
    """Q1, Q2: phase, version and the count of what stays are stored, as one write, between marking pods and deleting them."""
    actual_phase_on_add: bool = True
    """Q3, Q4: a pod seen for the first time stands for the event of its phase; what was lost meanwhile is found."""
    sync_with_timer: bool = True
    """Q5: a delayed action does not keep its event from being looked at."""
    wait_for_delays: bool = True
    """Q5: and so that this does not end the job first, it does not fail while an action waits that may still help."""
    timers_by_pod_uid: bool = True
    """Q6, Q7, Q8, Q40: timers belong to one pod of one job and version, end with their cause, and outlive a restart."""
    delayed_through_queue: bool = True
    """Q8, Q9: a due action goes through the job's own queue, and is tried again as that action."""
    partition_needs_task: bool = True
    """Q10: a restarted partition only ends timers of its own task."""
    version_of_podgroup: bool = True
    """Q11: a PodGroup's news count for the job's present version."""
    mark_surplus: bool = True
    """Q12: pods that go because of a smaller scale are marked, so that no policy takes them for evicted."""
    finished_is_not_evicted: bool = True
    """Q13: removing a finished pod evicts nothing, and a pod that succeeded stays counted."""
    policies_first: bool = True
    """Q14: what a policy may answer is processed before a plain sync of the same job."""
    actions_while_restarting: bool = True
    """Q15: Abort, Terminate and Complete are honoured while the job restarts."""
    free_resume: bool = True
    """Q16: resuming by hand takes nothing from the retry budget."""
    free_preemption: bool = True
    """Q17: a restart because of a preempted pod takes nothing from the retry budget."""
    hooks_for_job_only: bool = True
    """Q18: restarting a task, pod or partition leaves what the plugins made alone."""
    budget_before_restart: bool = True
    """Q19: a targeted restart on the last retry keeps finished pods, and no pod is made once the budget is used up."""
    sync_without_target: bool = True
    """Q20: a targeted action that names no pods is a sync, and says so."""
    stay_pending: bool = True
    """Q21, Q22: a lasting error never terminates a job: slow retries, and the reason in its status and Events."""
    stamp_on_change: bool = True
    """Q23: times are those of phase changes; the running duration counts from the first Running."""
    write_only_changes: bool = True
    """Q24, Q42: status, version and kill passes only where something is different or left."""
    check_podgroup: bool = True
    """Q25, Q26: a PodGroup counts only if it is this job's and stays; its coming and going is looked at."""
    strict_dependencies: bool = True
    """Q27: a dependency without minAvailable means all its replicas; one on an unknown task is reported."""
    always_check_tasks: bool = True
    """Q28: a task's minAvailable decides about success, whatever the job's own is."""
    first_failing_container: bool = True
    """Q29: the exit code is that of the first container that failed."""
    known_actions_only: bool = True
    """Q30: a policy with an action that does not exist is passed over."""
    mount_everywhere: bool = True
    """Q31: each mount path of a volume is mounted, in init containers too; claims are named after job and position."""
    own_pods_only: bool = True
    """Q33: pods of an earlier job of the same name are not this job's."""
    count_after_write: bool = True
    """Q35: metrics count what was stored."""
    requests_from_limits: bool = True
    """Q37: minResources take limits for missing requests, and the job's priority class for tasks without one."""
    count_pods_in_errors: bool = True
    """Q38: "failed to create n pods of m" counts pods."""
    count_once: bool = True
    """Q39: a marked pod met in a sync is terminating, and nothing else."""
    commands_after: bool = True
    """Q43: a Command must mean this very job, and is removed once it was executed."""
    reconcile_podgroup: bool = True
    """Q44: labels, annotations, queue and topology of the PodGroup follow the job."""
    own_restarts_only: bool = True
    """A pod reports TaskFailed only when its own containers were restarted, not because another pod's were: a policy
    RestartPod would otherwise replace the new pod for ever, and leave the failing one alone."""
    clean_second_restart: bool = True
    """A restart within a restart costs no retry, and so is not the last one because the next would be: no failed pod is
    kept that nothing would ever restart again."""
    coalesce: bool = True
    """Changes that no policy answers become one sync per job, however many there are."""
    write_history: bool = True
    """Every change of phase is kept in ``status.history``."""

    @classmethod
    def default(cls) -> Behaviour:
        """What a user would want."""
        return cls()

    @classmethod
    def strict(cls) -> Behaviour:
        """Exactly Volcano's."""
        return cls(**{field.name: False for field in fields(cls)})

    @classmethod
    def of(cls, compat: str) -> Behaviour:
        """The behaviour of a cluster's ``compat`` ("default" or "strict")."""
        return cls.strict() if compat == "strict" else cls.default()

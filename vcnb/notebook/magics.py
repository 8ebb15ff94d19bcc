"""The magics ``%%vcjob``, ``%%jobflow``, ``%%jobnode``, ``%vcjob``, ``%jobflow``, ``%cache`` and ``%vcnb``.

Each verb is a small function; the parser says what it takes. What they need is imported when one is first used, so that
``%load_ext vcnb`` costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_cell_magic, line_magic, magics_class, no_var_expand

from vcnb.errors import VcnbError
from vcnb.notebook.arguments import Help, split
from vcnb.notebook.silence import ends_silently, silence

__all__ = ["VcnbMagics"]


@magics_class
class VcnbMagics(Magics):
    """Submit and watch Volcano jobs from cells."""

    @no_var_expand
    @line_cell_magic
    def vcjob(self, line: str, cell: str | None = None) -> Any:
        """Run a cell as a gang-scheduled Volcano job, or look at jobs.

        %%vcjob train --replicas 4 --cpu 1 --policy PodFailed=RestartJob
        import os; print("worker", os.environ["VC_TASK_INDEX"])

        The cell is Python, bash (a first line #!/bin/bash, or --lang bash), or YAML with `kind:`, whose keys are completed.
        --dry-run shows the exact object, --diff what would change against the one that is stored; both submit nothing.

        %vcjob list                       %vcjob get train [-o yaml]
        %vcjob watch train                %vcjob logs train [--task T] [--index N] [--tail N]
        %vcjob describe train             %vcjob why train
        %vcjob suspend|resume|restart|terminate|complete|delete train
        %vcjob scale train worker=5

        `%vcjob VERB -h` and `%%vcjob -h` show all options. {expr} and $name in the line are replaced from your variables.
        """
        from vcnb.notebook import jobs

        if cell is None:
            return self._dispatch("vcjob", line, jobs.VERBS)
        return self._guarded(lambda words: jobs.submit_cell(self.shell, words, cell), line)

    @no_var_expand
    @line_cell_magic
    def jobflow(self, line: str, cell: str | None = None) -> Any:
        """Run a graph of jobs, or look at flows.

        %%jobflow digits --param folds=5
        prepare >> fit >> report
        fit: train(C=item, folds=params.folds) --for-each "[0.1, 1, 10]" --retry 2
        report: report.ipynb

        The cell is the short form (`%jobflow help` explains it), or YAML with JobTemplates and a JobFlow.
        --dry-run shows the exact objects, --diff what would change against what is stored; both submit nothing.

        %jobflow list                     %jobflow get digits [-o yaml]
        %jobflow watch digits             %jobflow logs digits [NODE] [--tail N]
        %jobflow nodes digits             %jobflow describe digits
        %jobflow why digits
        %jobflow suspend|resume|retry|terminate|delete digits

        `%jobflow VERB -h` and `%jobflow help` show all options. {expr} and $name in the line are replaced from your variables.
        """
        from vcnb.notebook import flows, flowverbs

        if cell is None:
            return self._dispatch("jobflow", line, flowverbs.VERBS)
        return self._guarded(lambda words: flows.submit_cell(self.shell, words, cell), line)

    @no_var_expand
    @cell_magic
    def jobnode(self, line: str, cell: str) -> None:
        """Keep a cell as what a node runs, for %%jobflow cells that name it.

        %%jobnode prepare --cpu 1
        print("Python, or bash with a first line #!/bin/bash")
        """
        from vcnb.notebook import flows

        self._guarded(lambda words: flows.keep_cell(words, cell), line)

    @no_var_expand
    @line_magic
    def cache(self, line: str) -> Any:
        """Load datasets into the cache, free, copy and move them: Alluxio's commands and option names.

        %cache load s3://bucket/data/ --replicas 2 --skip-if-exists
        %cache load --path /data/set --verify --out job
        %cache free s3://bucket/data/
        %cache copy|move SRC DST [--check-content] [--overwrite]

        %cache list [--job-type LOAD] [--job-state RUNNING]
        %cache progress PATH [--type load|free|copy|move] [--file-status FAILURE] [--format TEXT|JSON]
        %cache stop PATH                  %cache rerun --path PATH | --coordinator HOST
        %cache coverage PATH              %cache config [PROPERTY=VALUE ...]

        `%cache VERB -h` shows all options. {expr} and $name in the line are replaced from your variables.
        """
        from vcnb.notebook import cache

        return self._dispatch("cache", line, cache.VERBS)

    @no_var_expand
    @line_magic
    def vcnb(self, line: str) -> Any:
        """Connect to a cluster, and look at it.

        %vcnb connect [URL]     embedded://name, memory:// ...; without a URL the default cluster
        %vcnb status            what it runs on, what is in use, jobs by phase
        %vcnb queues            the queues
        %vcnb dashboard         nodes, queues and jobs, kept up to date
        %vcnb config [frontend=live|static|none|auto] [widgets=on|off|auto]
        %vcnb nest              allow asyncio.run() in cells, where that is safe
        """
        from vcnb.notebook import settings

        return self._dispatch("vcnb", line, settings.VERBS)

    def _dispatch(self, magic: str, line: str, verbs: dict[str, Callable[[Any, Sequence[str]], Any]]) -> Any:
        def run(words: Sequence[str]) -> Any:
            if not words or words[0] in ("-h", "--help"):
                print((getattr(type(self), magic).__doc__ or "").strip())  # noqa: T201 - help is what was asked for
                return None
            verb, *rest = words
            if verb not in verbs:
                raise UsageError(_unknown_verb(magic, verb, verbs))
            try:
                value = verbs[verb](self.shell, rest)
            except VcnbError as error:
                if "--no-raise" not in rest:
                    raise
                if "--quiet" not in rest:
                    print(f"{type(error).__name__}: {error}")  # noqa: T201 - told instead of raised, as asked for
                return None
            return silence(self.shell, value) if "--quiet" in rest else value

        return self._guarded(run, line)

    def _guarded(self, run: Callable[[Sequence[str]], Any], line: str) -> Any:
        line, silent = ends_silently(line)
        try:
            value = run(split(line, self.shell.user_ns if self.shell is not None else {}))
        except Help as shown:
            print(shown)  # noqa: T201 - help is what was asked for
            return None
        return silence(self.shell, value) if silent else value


def _unknown_verb(magic: str, verb: str, verbs: dict[str, Any]) -> str:
    import difflib

    near = difflib.get_close_matches(verb, verbs, n=1)
    hint = f"did you mean {near[0]!r}?" if near else "there are: " + ", ".join(verbs)
    return f"%{magic}: unknown verb {verb!r}; {hint}"

"""The magics in a shell: what a cell gives and what it shows, errors told instead of raised, scripts word by word."""

import atexit

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

import vcnb
from vcnb.client.job import JobHandle
from vcnb.notebook import current, frontend

SCRIPT = "%%vcjob {name} --no-wait {options}\nprint(1)"
YAML = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: {name}}}
spec:
  tasks:
  - {{name: w, replicas: 1, dependsOn: {{name: []}}, template: {{spec: {{containers: [{{name: m, image: b}}]}}}}}}
"""


@pytest.fixture(scope="module")
def kernel():
    shell = InteractiveShell(config=Config(HistoryManager={"enabled": False, "hist_file": ":memory:"}))
    shell.run_cell("%load_ext vcnb")
    yield shell
    atexit.unregister(shell.atexit_operations)
    shell.atexit_operations()


@pytest.fixture
def shell(kernel, monkeypatch):
    monkeypatch.setattr(frontend, "_chosen", None)
    with vcnb.connect("memory://?runtime=simulated&clock=virtual") as cluster:
        monkeypatch.setattr(current, "_current", cluster)
        yield kernel


class Ran:
    """One cell that was run: its value, what it raised, and what it showed."""

    def __init__(self, shell, text):
        with capture_output() as captured:
            result = shell.run_cell(text, store_history=True)
        self.value = result.result
        self.error = result.error_in_exec or result.error_before_exec
        self.out, self.err, self.shown = captured.stdout, captured.stderr, captured.outputs


@pytest.mark.parametrize("options", ["--quiet", ";", "--cpu 1;"])
def test_a_silenced_cell_gives_its_handle_and_shows_nothing(shell, options):
    ran = Ran(shell, SCRIPT.format(name="a", options=options))

    assert (type(ran.value), ran.value.name, shell.user_ns["_"] is ran.value) == (JobHandle, "a", True)
    assert (ran.out, ran.err, ran.shown) == ("", "", [])
    assert "job default/a" in Ran(shell, "_").out


def test_a_semicolon_at_the_end_of_the_script_is_the_scripts(shell):
    ran = Ran(shell, "%%vcjob a --no-wait\nprint(1);")

    assert ran.value.name == "a"
    assert "job default/a" in ran.out


def test_a_semicolon_silences_a_line_too(shell):
    Ran(shell, SCRIPT.format(name="a", options=""))

    ran = Ran(shell, "%vcjob list;")

    assert (len(ran.value), ran.out) == (1, "")
    assert Ran(shell, "j = %vcjob get a ;\nj.name").value == "a"
    assert "has no option" not in Ran(shell, "%vcjob get a -o 'yaml;'").out


def test_several_documents_are_a_list_also_when_nothing_is_shown(shell):
    text = "%%vcjob --no-wait --quiet --out both\n" + YAML.format(name="a") + "---\n" + YAML.format(name="b")

    ran = Ran(shell, text)

    assert [handle.name for handle in ran.value] == ["a", "b"]
    assert shell.user_ns["both"] is ran.value
    assert ran.out == ""


@pytest.mark.parametrize("verb", ["get", "logs", "why", "describe", "suspend", "delete", "watch", "scale x"])
def test_no_raise_tells_what_goes_wrong_and_quiet_shows_nothing(shell, verb):
    words = verb.replace("scale", "scale nothing").replace(" x", " w=1") if "scale" in verb else f"{verb} nothing"

    told, quiet = Ran(shell, f"%vcjob {words} --no-raise"), Ran(shell, f"%vcjob {words} --no-raise --quiet")

    assert type(Ran(shell, f"%vcjob {words}").error) is vcnb.NotFound
    assert (told.error, told.out) == (None, "NotFound: there is no job 'nothing' in namespace 'default'\n")
    assert (quiet.error, quiet.out, quiet.err) == (None, "", "")


def test_a_wait_that_runs_out_of_time_is_told_with_no_raise(shell):
    ran = Ran(shell, "%%vcjob a --wait --timeout 0.1 --no-raise\nprint(1)")

    assert ran.error is None
    assert "WaitTimeout: job 'a' is Pending" in ran.out
    assert ran.value.name == "a"


@pytest.mark.parametrize(
    "body",
    ["echo $$ $(date) '$$(X)' $((1 + 1)) $HOME $", "print('$(VC_TASK_INDEX) $$$$ $')", "a = '$$$(PATH)$'"],
)
def test_a_kubelet_gets_back_the_script_word_by_word(shell, body):
    from vcnb.local.node.environment import expand

    language = "bash" if body.startswith("echo") else "python"
    Ran(shell, f"%%vcjob a --no-wait --lang {language}\n{body}")

    (pod,) = current.current().pods
    program, flag, script = pod.object["spec"]["containers"][0]["command"]
    assert (program, flag) == (language, "-c")
    assert expand(script, {"PATH": "p", "VC_TASK_INDEX": "0", "date": "d", "X": "x"}) == body + "\n"


def test_problems_of_a_script_stand_in_the_magics_line(shell):
    error = Ran(shell, "%%vcjob Bad --policy PodFaild=RestartJob\nprint(1)").error

    assert {(problem.line, problem.path) for problem in error.errors} == {
        (1, "metadata.name"),
        (1, "spec.policies[0].event"),
    }


def test_warnings_of_yaml_have_the_line_of_the_cell(shell):
    ran = Ran(shell, "%%vcjob --no-wait\n" + YAML.format(name="a"))

    assert "warning: line 7: spec.tasks[0].dependsOn" in ran.out


@pytest.mark.parametrize("option", ["--replicas 3", "--queue q", "--env A=b", "--cpu 1"])
def test_what_describes_a_script_is_refused_beside_yaml(shell, option):
    ran = Ran(shell, f"%%vcjob {option}\n" + YAML.format(name="a"))

    assert f"{option.split()[0]} is for a script" in ran.err


def test_a_wrong_setting_is_a_usage_error(shell):
    assert "possible: auto, live, static, none" in Ran(shell, "%vcnb config frontend=dead").err


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%vcjob l", {"list", "logs"}),
        ("%vcjob get ", {"alpha", "beta"}),
        ("%vcjob logs a", {"alpha"}),
        ("%vcjob logs alpha --t", {"--task", "--tail"}),
        ("%vcjob list --queue ", {"default", "root"}),
        ("%%vcjob x --re", {"--replicas", "--replace"}),
        ("%%vcjob x --lang ", {"python", "bash", "yaml"}),
        ("%vcnb connect --q", {"--quiet"}),
        ("%vcnb config f", {"frontend="}),
    ],
)
def test_completion(shell, text, expected):
    current.current().submit([vcnb.Job(name=name, tasks=[vcnb.Task("w", command=["x"])]) for name in ("alpha", "beta")])

    with provisionalcompleter():
        found = {completion.text for completion in shell.Completer.completions(text, len(text))}

    assert expected <= found
    start = text.rsplit(" ", 1)[1]
    assert {word for word in found if start and word.startswith(start) and word.startswith("-")} <= expected

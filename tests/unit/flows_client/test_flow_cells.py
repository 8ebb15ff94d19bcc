"""%%jobflow, %%jobnode and %jobflow on a simulated cluster: the short form, YAML, options, errors with lines."""

from types import SimpleNamespace

import pytest
import yaml
from IPython.core.error import UsageError

import vcnb
from unit.flows_client.flow_samples import end, jobflow, submit, task, template
from vcnb.notebook import current, flows
from vcnb.notebook.flowverbs import VERBS
from vcnb.notebook.flowwords import CELLS
from vcnb.notebook.magics import VcnbMagics


@pytest.fixture
def cluster():
    with vcnb.connect("memory://?runtime=simulated&clock=virtual") as made:
        before = current._current
        current.set_current(made)
        yield made
        current._current = before
        CELLS.clear()


@pytest.fixture
def shell():
    return SimpleNamespace(user_ns={}, display_trap=SimpleNamespace(is_active=False))


def run(shell, line, body):
    return flows.submit_cell(shell, line.split(), body)


def spec_of(cluster, name="f"):
    return {node["name"]: node for node in cluster.flows[name].spec["flows"]}


def container_of(cluster, name):
    return cluster.templates[name].spec["tasks"][0]["template"]["spec"]["containers"][0]


def test_nodes_commands_scripts_and_arrows(cluster, shell):
    body = """\
prepare >> train >> report, check
prepare: --cpu 500m --output n ! echo hello
train: --retry 2 --backoff 1 --for-each "[1, 2]" --parallel 1 --replicas 2 |
    import os
    print(os.environ["VC_FLOW_ITEM"])
report: --when "params.folds > 3" |
    #!/bin/bash
    echo done
check: ! true
train.failed >> alarm
alarm: ! echo alarm
"""
    handle = run(shell, "f --no-wait --out flow --param folds=5", body)

    assert handle is shell.user_ns["flow"]
    found = spec_of(cluster)
    assert list(found) == ["prepare", "train", "report", "check", "alarm"]
    assert handle.params == {"folds": 5}
    assert found["train"]["dependsOn"] == {"targets": ["prepare"]}
    assert found["train"]["retry"] == {"limit": 2, "backoff": {"seconds": 1.0}}
    assert found["train"]["forEach"] == {"items": [1, 2], "maxParallel": 1}
    assert found["report"]["when"] == "params.folds > 3"
    assert found["alarm"]["dependsOn"] == {"targetsWithStatus": [{"name": "train", "phases": ["Failed"]}]}
    assert found["prepare"]["outputs"] == {"n": {}}
    assert container_of(cluster, "f-prepare")["command"] == ["bash", "-c", "echo hello"]
    assert container_of(cluster, "f-prepare")["resources"]["requests"] == {"cpu": "500m"}
    assert container_of(cluster, "f-train")["command"] == [
        "python",
        "-c",
        'import os\nprint(os.environ["VC_FLOW_ITEM"])',
    ]
    assert container_of(cluster, "f-report")["command"][0] == "bash"
    assert cluster.templates["f-train"].spec["tasks"][0]["replicas"] == 2


def test_names_mean_jobs_of_the_notebook_kept_cells_and_templates(cluster, shell, capsys):
    flows.keep_cell(["prepare", "--cpu", "1"], "print(1)\n")
    cluster.submit(template("report"))
    shell.user_ns["train_model"] = vcnb.Job(name="x", tasks=[task("train")])

    run(shell, "f --no-wait --quiet", "prepare >> train-model >> report")

    assert capsys.readouterr().out == "kept as node 'prepare'; run it with %%jobflow\n"
    found = spec_of(cluster)
    assert found["prepare"]["templateRef"] == "f-prepare"
    assert found["train-model"]["dependsOn"] == {"targets": ["prepare"]}
    assert "templateRef" not in found["report"]
    assert container_of(cluster, "f-train-model")["command"] == ["sh", "-c", "train"]


def test_env_of_a_template_on_the_cluster_is_refused(cluster, shell):
    cluster.submit(template("report"))

    with pytest.raises(vcnb.VcnbError, match="line 2 of the cell: node 'a': env needs the job itself"):
        run(shell, "f --no-wait", "a: report --env A=b")


def test_functions_become_nodes_and_their_names_get_dashes(cluster, shell):
    def make_data(n):
        return n

    shell.user_ns["make_data"] = make_data

    run(
        shell,
        "f --no-wait --param n=3",
        'make_data >> use\nuse: make_data(n=flows["make-data"].outputs.value) --replicas 2',
    )

    found = spec_of(cluster)
    assert list(found) == ["make-data", "use"]
    assert found["make-data"]["outputs"] == {"value": {}}
    arguments = found["use"]["patch"]["jobSpec"]["tasks"][0]["template"]["spec"]["containers"][0]["env"]
    assert arguments == [{"name": "VCNB_ARGUMENT_0", "value": '${{ [flows["make-data"].outputs.value] }}'}]
    assert cluster.templates["f-use"].spec["tasks"][0]["replicas"] == 2
    assert [secret.name.rpartition("-")[0] for secret in cluster.secrets] == ["f-make-data", "f-use"]


def test_a_switch_and_a_loop_and_cache_nodes(cluster, shell):
    body = """\
pick: --switch params.mode --case full=big --case 3=quick,other --default other
big: ! true
quick: --until "iteration >= 2" --max 5 --delay 1 ! true
other: --load s3://bucket/data --cache-option replicas=2
move: --move /a /b --after other --any --timeout 60 --on-timeout Skip
"""
    run(shell, "f --no-wait --param mode=full", body)

    found = spec_of(cluster)
    assert list(found) == ["pick", "big", "quick", "other", "move"]
    assert [case["value"] for case in found["pick"]["switch"]["cases"]] == ["full", 3]
    assert found["pick"]["switch"]["default"] == ["other"]
    assert found["quick"]["loop"] == {"until": "iteration >= 2", "maxIterations": 5, "delaySeconds": 1}
    assert found["other"]["cache"] == {"load": {"path": "s3://bucket/data", "replicas": 2}}
    assert found["move"]["cache"] == {"move": {"src": "/a", "dst": "/b"}}
    assert found["move"]["dependsOn"] == {
        "targets": ["other"],
        "strategy": "any",
        "timeoutSeconds": 60,
        "onTimeout": "Skip",
    }


def test_items_as_a_range_and_as_an_expression(cluster, shell):
    run(
        shell,
        "f --no-wait --param xs=[1]",
        "a: --for-each range(1,9,2) ! true\nb: --for-each params.xs --tolerate 20% ! true",
    )

    found = spec_of(cluster)
    assert found["a"]["forEach"] == {"range": {"start": 1, "end": 9, "step": 2}}
    assert found["b"]["forEach"] == {"itemsFrom": "params.xs", "tolerateFailures": "20%"}


def test_parameters_keep_their_types(cluster, shell):
    shell.user_ns |= {"version": "1.10", "lr": 0.1}
    line = [
        "f",
        "--no-wait",
        "--param",
        "version",
        "--param",
        "lr",
        "--param",
        "n=3",
        "--param",
        "s=a b",
        "-p",
        "x=[1]",
    ]

    handle = flows.submit_cell(shell, line, "a: ! true")

    assert handle.params == {"version": "1.10", "lr": 0.1, "n": 3, "s": "a b", "x": [1]}
    with pytest.raises(UsageError, match="no variable 'nope'"):
        run(shell, "g --param nope", "a: ! true")


def test_settings_of_the_flow(cluster, shell):
    run(shell, "f --no-wait --max-parallel 2 --continue --deadline 90 --queue default", "a: ! true")

    spec = cluster.flows["f"].spec
    assert (spec["maxParallel"], spec["failurePolicy"], spec["activeDeadlineSeconds"]) == (2, "Continue", 90)
    assert spec["scheduling"] == {"queue": "default"}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("a: nothing", "line 2 of the cell: node 'a': 'nothing' is no function or job"),
        ("a: trian", "did you mean 'train'"),
        ("a: number", "'number' is a int; a node runs a function"),
        ("a: missing.ipynb", "there is no notebook 'missing.ipynb'"),
        ("a: train", "line 2 of the cell: node 'a': train.*missing a required argument: 'c'"),
        ("\na: ! true\nb: ! true --after a\nb >> c", "line 5 of the cell: .*'c' is no function"),
        ("a: ! true\nb: --after x ! true", "line 3 of the cell: there is no node 'x'; there are: a, b"),
        ("a: ! true\nb: --after a.done ! true", "line 3 of the cell: 'a.done': a node is waited for until"),
        ("a: ! true\na: ! false", "line 3 of the cell: there is a node 'a' above already"),
        (
            "a: --retires 2 ! true",
            "line 2 of the cell: node a: unrecognized arguments: --retires.*did you mean --retry",
        ),
        ("a: ! true\na >> a", "line 3 of the cell: node 'a' cannot wait for itself"),
        ("a: |\n  x = 1\n  def", "line 4 of the cell: node 'a' is no Python"),
        ("a: |\n  kind: Job\n  apiVersion: x", "a node's script is Python or bash"),
        ("a: train --lang bash", "--lang does not go with a function"),
        ("a: job --cpu 1", "--cpu does not go with a job that is made elsewhere"),
        ("a: job(x=1)", "takes no arguments"),
        ("a: train ! true", "'train' stands beside a command"),
        ("a: !", "the command behind '!' is missing"),
        ("a: --switch 1 --case b", "write --case VALUE=NODE"),
        ("a: --switch 1", "node 'a'.*no cases|'a' has no cases"),
        ("a: --env X ! true", "--env 'X': write --env NAME=VALUE"),
        ("# nothing\n", "there is no node"),
    ],
)
def test_mistakes_are_told_with_their_line(cluster, shell, body, message):
    def train(c):
        return c

    shell.user_ns |= {"train": train, "number": 3, "job": vcnb.Job(name="j", tasks=[task()])}

    with pytest.raises(vcnb.VcnbError, match=message):
        run(shell, "f --no-wait", body)
    assert len(cluster.flows) == 0


def test_what_admission_refuses_is_told_with_node_and_line(cluster, shell):
    with pytest.raises(vcnb.InvalidObject) as caught:
        run(shell, "f --no-wait", '\nok: ! true\nBad: ! true\nc: --when "params.nope" ! true\n')

    lines = str(caught.value).splitlines()[1:]
    assert any("line 4: " in line and "'Bad'" in line for line in lines)
    assert any(line.startswith("  line 5: spec.flows[2].when: node 'c'") for line in lines)


# -- YAML

YAML = "\n---\n".join(yaml.safe_dump(each) for each in (template("a"), jobflow("f", "a", params={"lr": 0.1})))


def test_yaml_documents_are_a_flow_with_its_templates(cluster, shell):
    handle = run(shell, "--no-wait --param lr=0.5", YAML)

    assert (handle.name, handle.params) == ("f", {"lr": 0.5})
    assert "a" in cluster.templates


def test_a_cell_of_yaml_can_be_run_again_once_its_flow_is_gone(cluster, shell):
    run(shell, "--no-wait", YAML)

    with pytest.raises(vcnb.AlreadyExists, match="jobflow 'f' exists"):
        run(shell, "--no-wait", YAML)
    first = cluster.flows["f"].uid
    cluster.flows.delete("f")
    cluster.simulator.reap()

    assert run(shell, "f --no-wait", YAML.replace("busybox", "other")).uid != first
    assert container_of(cluster, "a")["image"] == "other"


def test_yaml_and_the_line_must_not_contradict_each_other(cluster, shell):
    with pytest.raises(UsageError, match="say the name once"):
        run(shell, "g", YAML)
    with pytest.raises(UsageError, match="--max-parallel is for the short form"):
        run(shell, "--max-parallel 2", YAML)
    with pytest.raises(vcnb.InvalidObject, match=r"line 2[0-9]: spec\.params: --param lrr: .*did you mean 'lr'"):
        run(shell, "--param lrr=1", YAML)
    with pytest.raises(vcnb.VcnbError, match="no JobFlow in the cell"):
        run(shell, "", yaml.safe_dump(template("a")))


def test_lines_of_yaml_are_lines_of_the_cell(cluster, shell):
    text = "apiVersion: flow.volcano.sh/v1alpha1\nkind: JobFlow\nmetadata: {name: f}\nspec:\n  flows:\n  - name: a\n    whn: x\n"

    with pytest.raises(vcnb.InvalidObject, match=r"line 8: spec\.flows\[0\]\.whn"):
        run(shell, "", text)


# -- options of the cell


def test_a_dry_run_shows_the_objects_and_stores_nothing(cluster, shell, capsys):
    assert run(shell, "f --dry-run", "a: ! true\nb: ! true\na >> b") is None

    shown = list(yaml.safe_load_all(capsys.readouterr().out))
    assert [(each["kind"], each["metadata"]["name"]) for each in shown] == [
        ("JobTemplate", "f-a"),
        ("JobTemplate", "f-b"),
        ("JobFlow", "f"),
    ]
    assert (len(cluster.flows), len(cluster.templates)) == (0, 0)
    with pytest.raises(vcnb.InvalidObject, match=r"line 2: .*node 'a'"):
        run(shell, "f --dry-run", 'a: --when "oops(" ! true')


def test_replace_deletes_the_flow_of_that_name_first(cluster, shell):
    first = run(shell, "f --no-wait", "a: ! true")

    second = run(shell, "f --no-wait --replace", "b: ! true")

    assert not first.exists
    assert list(second.nodes) == ["b"]


def test_warnings_are_printed_with_the_nodes_line(cluster, shell, capsys):
    text = yaml.safe_dump(jobflow("g", "nowhere"))
    run(shell, "--no-wait", text)

    assert "warning: " in capsys.readouterr().out


def test_the_body_is_expanded_only_when_asked_to(cluster, shell):
    shell.user_ns["what"] = "hello"

    run(shell, "f --no-wait --template", "a: ! echo {{ what }}")
    run(shell, "g --no-wait", "a: ! echo {{ what }}")

    assert container_of(cluster, "f-a")["command"][2] == "echo hello"
    assert container_of(cluster, "g-a")["command"][2] == "echo {{ what }}"


def test_a_cell_needs_a_name_and_a_body(cluster, shell):
    with pytest.raises(UsageError, match="needs a name"):
        run(shell, "", "a: ! true")
    with pytest.raises(UsageError, match="body is empty"):
        run(shell, "f", "  \n")
    with pytest.raises(UsageError, match="did you mean --param"):
        run(shell, "f --parm x=1", "a: ! true")


def test_a_kept_cell_may_be_yaml_of_one_job(cluster, shell):
    text = yaml.safe_dump(vcnb.Job(name="x", tasks=[task("kept")]).to_manifest())
    flows.keep_cell(["k", "--quiet"], text)

    run(shell, "f --no-wait", "a: k")

    assert container_of(cluster, "f-a")["command"] == ["sh", "-c", "kept"]
    with pytest.raises(UsageError, match="one Job or JobTemplate"):
        flows.keep_cell(["k"], yaml.safe_dump(jobflow("f", "a")))
    with pytest.raises(UsageError, match="body is empty"):
        flows.keep_cell(["k"], "")


# -- %jobflow


def test_the_verbs_look_at_flows_and_steer_them(cluster, shell, capsys):
    flow = submit(cluster, jobflow("f", "a", "b<a"))

    assert len(VERBS["list"](shell, [])) == 1
    assert len(VERBS["list"](shell, ["--phase", "Failed"])) == 0
    assert VERBS["get"](shell, ["f"]).uid == flow.uid
    assert list(VERBS["nodes"](shell, ["f"])) == ["a", "b"]
    VERBS["get"](shell, ["f", "-o", "yaml"])
    assert yaml.safe_load(capsys.readouterr().out)["metadata"]["name"] == "f"
    VERBS["suspend"](shell, ["f"])
    assert flow.spec["suspend"] is True
    VERBS["resume"](shell, ["f"])
    end(cluster, "f-a", exit_code=1)
    VERBS["why"](shell, ["f"])
    VERBS["describe"](shell, ["f"])
    VERBS["logs"](shell, ["f", "a"])
    said = capsys.readouterr().out
    assert "flow f: suspend asked for" in said
    assert "Flow f failed because of node a" in said
    assert "Nodes:" in said
    VERBS["retry"](shell, ["f", "--no-wait"])
    assert flow.nodes["a"].job == "f-a-r1"
    VERBS["terminate"](shell, ["f", "--quiet"])
    VERBS["delete"](shell, ["f"])
    assert "flow f deleted" in capsys.readouterr().out


def test_watching_prints_changes_and_raises_at_a_failure(cluster, shell, capsys):
    submit(cluster, jobflow("f", "a", "b<a"))
    end(cluster, "f-a", exit_code=1)

    with pytest.raises(vcnb.FlowFailed):
        VERBS["watch"](shell, ["f"])
    assert "  ✘ a: Failed" in capsys.readouterr().out
    assert VERBS["watch"](shell, ["f", "--no-raise"]).phase == "Failed"


def test_a_large_flow_reports_counts_instead_of_nodes(cluster, shell, capsys):
    nodes = [{"name": f"n{i}", "when": "1 > 2", "templateRef": "t"} for i in range(50)]
    submit(cluster, jobflow("f", *nodes))

    VERBS["watch"](shell, ["f"])

    assert "(50 of 50 nodes done)" in capsys.readouterr().out


def test_help_explains_the_cell(shell, capsys):
    VERBS["help"](shell, [])

    said = capsys.readouterr().out
    for part in ("--param", "--for-each", "prepare >> train >> report", "--switch"):
        assert part in said


def test_the_magics_are_registered_under_their_names():
    magics = VcnbMagics.magics

    assert {"jobflow"} <= set(magics["line"])
    assert {"jobflow", "jobnode"} <= set(magics["cell"])

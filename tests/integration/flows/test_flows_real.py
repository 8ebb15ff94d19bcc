"""Flows of real processes: commands, functions, notebooks, retries, outputs, deletion; and from the command line."""

import json

import nbformat
import pytest
import yaml
from click.testing import CliRunner

import vcnb
from vcnb.cli.main import main

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


def task(command, name="w", **options):
    return vcnb.Task(name, image="bash", command=["bash", "-c", command], **options)


@pytest.fixture
def cluster():
    with vcnb.connect("memory://") as made:
        yield made


def test_functions_pass_values_on_with_their_types(cluster):
    def make(n):
        print("making", n)
        return {"n": n, "names": ["a", "b"]}

    def square(x, offset, names):
        return {"y": x * x + offset, "first": names[0]}

    def total(items, text, plain=5):
        assert isinstance(text, str)
        return sum(each["outputs"]["y"] for each in items) + plain

    flow = vcnb.Flow("f", params={"n": 2, "text": "7"})
    first = flow.add("make", make, args={"n": flow.param("n")}, outputs=["n", "names"])
    each = flow.add(
        "square",
        square,
        args={"x": "${{ item }}", "offset": first.output("n"), "names": first.output("names")},
        for_each=[1, 2.5],
        outputs="y",
    )
    last = flow.add(total, args=["${{ flows.square.items }}", "${{ params.text }}"])
    first >> each >> last

    handle = cluster.submit(flow).wait(timeout=60)

    assert handle.jobs["total"].result() == 1 + 2.5**2 + 2 * 2 + 5
    assert handle.jobs["square[1]"].result() == {"y": 8.25, "first": "a"}
    assert handle.nodes["total"].outputs == {"value": 16.25}
    assert handle.logs(node="make") == "making 2\n"
    assert handle.nodes["square"].items[0].outputs == {"y": 3}


def test_a_function_that_fails_fails_its_node_with_its_words(cluster):
    def broken():
        raise ValueError("no such luck")

    flow = vcnb.Flow("f")
    flow.add(broken)

    with pytest.raises(vcnb.FlowFailed, match="no such luck") as caught:
        cluster.submit(flow).wait(timeout=60)
    assert caught.value.nodes == ("broken",)
    with pytest.raises(ValueError, match="no such luck"):
        cluster.flows["f"].jobs["broken"].result()


def test_a_function_with_the_wrong_arguments_is_refused_before_anything_runs(cluster):
    def fit(lr):
        return lr

    with pytest.raises(vcnb.VcnbError, match=r"node 'fit': fit\(lr\): missing a required argument: 'lr'"):
        vcnb.Flow("f").add(fit)
    with pytest.raises(vcnb.VcnbError, match="there is no option 'replics'"):
        vcnb.Flow("f").add(fit, args={"lr": 1}, options={"replics": 2})


def test_a_decorated_function_keeps_its_options(cluster):
    @cluster.function(env={"GREETING": "hello"})
    def greet():
        import os

        return os.environ["GREETING"]

    flow = vcnb.Flow("f")
    flow.add(greet)

    assert cluster.submit(flow).wait(timeout=60).nodes["greet"].outputs == {"value": "hello"}


def test_what_a_function_returns_need_not_be_json(cluster):
    def make():
        return {1, 2}

    flow = vcnb.Flow("f")
    flow.add(make)
    handle = cluster.submit(flow).wait(timeout=60)

    assert handle.nodes["make"].outputs == {}
    assert handle.jobs["make"].result() == {1, 2}


def test_a_notebook_is_a_node_with_the_flows_parameters(cluster, tmp_path):
    parameters = nbformat.v4.new_code_cell("x = 1", metadata={"tags": ["parameters"]})
    notebook = nbformat.v4.new_notebook(cells=[parameters, nbformat.v4.new_code_cell("print('x is', x * 2)")])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "p", "language": "python"}
    path = tmp_path / "report.ipynb"
    nbformat.write(notebook, path)
    flow = vcnb.Flow("f", params={"x": 21})
    flow.add(str(path), args={"x": flow.param("x")})

    handle = cluster.submit(flow).wait(timeout=90)

    result = handle.jobs["report"].result()
    assert "x is 42" in json.dumps(result.notebook)
    assert result.path == str(tmp_path / "f-report.ipynb")
    wrong = vcnb.Flow("g")
    wrong.add(str(path), args={"x": "${{ flows.a.outputs.x }}"})
    with pytest.raises(vcnb.VcnbError, match=r"node 'report': the parameters of a notebook"):
        wrong.to_manifest()


def test_a_retry_and_outputs_of_a_command(cluster):
    flow = vcnb.Flow("f")
    flaky = flow.add(
        "flaky",
        task('[ "$VC_FLOW_ATTEMPT" != 0 ] && echo \'{"n": 7}\' > "$VC_OUTPUT_FILE"'),
        retry={"limit": 2, "backoff": {"seconds": 0.1}},
        outputs="n",
    )
    flaky >> flow.add("use", task("echo n is $N"), env={"N": flaky.output("n")})

    handle = cluster.submit(flow).wait(timeout=60)

    assert (handle.nodes["flaky"].attempts, handle.nodes["flaky"].outputs) == (2, {"n": 7})
    assert handle.logs(node="use") == "n is 7\n"


def test_retry_after_the_cause_is_gone_keeps_what_has_succeeded(cluster, tmp_path):
    file = tmp_path / "x"
    flow = vcnb.Flow("f", params={"file": str(file)})
    flow.add("a", task("echo once")) >> flow.add("b", task("cat ${{ params.file }}")) >> flow.add("c", task("echo c"))
    handle = cluster.submit(flow).wait(timeout=60, check=False)
    assert (handle.phase, handle.nodes["c"].phase) == ("Failed", "Omitted")
    uid = handle.jobs["a"].uid

    file.write_text("now it is there\n")
    handle.retry()

    assert handle.wait(timeout=60).phase == "Succeed"
    assert handle.jobs["a"].uid == uid
    assert "now it is there" in handle.logs(node="b")


def test_deleting_a_flow_ends_its_processes_and_frees_its_name(cluster, tmp_path):
    flow = vcnb.Flow("f")
    flow.add("a", task(f"echo $$ > {tmp_path}/pid; exec sleep 60"))
    handle = cluster.submit(flow)
    cluster.jobs["f-a"].wait("Running", timeout=30)

    handle.delete()

    assert (len(cluster.flows), len(cluster.jobs), len(cluster.pods), len(cluster.templates)) == (0, 0, 0, 0)
    assert cluster.submit(flow).nodes["a"].phase in ("Waiting", "Running")


# -- the command

MANIFEST = "\n---\n".join(
    yaml.safe_dump(each)
    for each in (
        vcnb.JobTemplate("hello", tasks=[task("echo hello $X; exit ${CODE:-0}")]).to_manifest(),
        {
            "apiVersion": "flow.volcano.sh/v1alpha1",
            "kind": "JobFlow",
            "metadata": {"name": "f"},
            "spec": {
                "params": {"x": "you", "code": 0},
                "flows": [
                    {
                        "name": "hello",
                        "patch": {
                            "jobSpec": {
                                "tasks": [
                                    {
                                        "name": "w",
                                        "template": {
                                            "spec": {
                                                "containers": [
                                                    {
                                                        "name": "w",
                                                        "env": [
                                                            {"name": "X", "value": "${{ params.x }}"},
                                                            {"name": "CODE", "value": "${{ params.code }}"},
                                                        ],
                                                    }
                                                ]
                                            }
                                        },
                                    }
                                ]
                            }
                        },
                    }
                ],
            },
        },
    )
)


@pytest.fixture
def command(tmp_path):
    def run(*words, text=None):
        url = f"embedded://flows?dir={tmp_path}/cluster&runtime=process"
        return CliRunner().invoke(main, ["--cluster", url, *words], input=text, catch_exceptions=False)

    return run


def test_run_list_view_and_delete(command):
    ran = command("flow", "run", "-f", "-", "-p", "x=everybody", "--wait", text=MANIFEST)

    assert ran.exit_code == 0, ran.output
    assert ran.output.startswith("Created JobTemplate: default/hello\nCreated JobFlow: default/f\n")
    assert ran.output.endswith("✔ f: Succeed\n")
    assert command("flow", "logs", "f").output == "hello everybody\n"
    listed = command("flow", "list").output
    assert listed.split()[:4] == ["NAME", "NAMESPACE", "PHASE", "AGE"]
    assert "✔ Succeed" in listed
    assert command("flow", "list", "-o", "name").output == "jobflows/f\n"
    assert json.loads(command("flow", "get", "-N", "f", "-o", "json").output)["kind"] == "JobFlow"
    assert yaml.safe_load(command("flow", "describe", "f").output)["spec"]["params"] == {"x": "everybody", "code": 0}
    assert json.loads(command("flow", "describe", "f", "-o", "json").output)["metadata"]["name"] == "f"
    assert "Nodes:" in command("flow", "view", "f").output
    assert "succeeded" in command("flow", "why", "f").output
    assert command("template", "list").output.split() == ["NAME", "NAMESPACE", "hello", "default"]
    assert command("template", "get", "hello", "-o", "name").output == "jobtemplates/hello\n"
    assert yaml.safe_load(command("template", "from-job", "f-hello", "-N", "t").output)["metadata"]["name"] == "t"
    assert command("flow", "delete", "-f", "-", text=MANIFEST).output == "Deleted JobFlow: default/f\n"
    assert command("template", "delete", "hello").output == "Deleted JobTemplate: default/hello\n"
    assert command("flow", "list").output == "No resources found\n"


def test_a_failing_flow_exits_with_1_and_can_be_retried(command):
    ran = command("flow", "run", "-f", "-", "-p", "code=3", "--wait", text=MANIFEST)

    assert ran.exit_code == 1
    assert "error: flow 'f' ended Failed" in ran.stderr
    assert command("flow", "retry", "f").output == "retry flow f successfully\n"
    assert command("flow", "wait", "f").exit_code == 1
    assert "f-hello-r1" in command("flow", "view", "f").output


def test_mistakes_on_the_command_line(command):
    assert command("flow", "run", "-f", "-", "-p", "x", text=MANIFEST).exit_code == 2
    assert command("flow", "get").exit_code == 2
    assert command("flow", "delete", "f", "-f", "x.yaml").exit_code == 2
    assert command("flow", "describe", "f", "-N", "f").exit_code == 2
    missing = command("flow", "get", "f")
    assert (missing.exit_code, missing.stderr) == (1, "error: there is no jobflow 'f' in namespace 'default'\n")
    wrong = command("flow", "run", "-f", "-", "-p", "y=1", text=MANIFEST)
    assert wrong.exit_code == 1
    assert "--param y: the flow has no such parameter; there are: code, x" in wrong.stderr
    assert command("flow", "delete", "-f", "-", text="kind: JobTemplate\nmetadata: {name: t}\n").exit_code == 1
    assert command("flow", "describe").output == "No resources found\n"

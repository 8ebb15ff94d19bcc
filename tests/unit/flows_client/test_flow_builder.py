"""vcnb.Flow: arrows, options, templates, expressions; what is submitted and what is refused."""

import pytest
import yaml

import vcnb
from unit.flows_client.flow_samples import end, task, template
from vcnb.client.flows.expressions import exact, lifted, only_parameter, with_environment


@pytest.fixture
def cluster():
    with vcnb.connect("memory://?runtime=simulated&clock=virtual") as made:
        yield made


def objects(flow):
    return {f"{item['kind']}/{item['metadata']['name']}": item for item in flow.to_manifest()["items"]}


def entries(flow):
    return {node["name"]: node for node in objects(flow)[f"JobFlow/{flow.name}"]["spec"]["flows"]}


def flow_of(*names, **options):
    flow = vcnb.Flow("f", **options)
    return flow, *(flow.add(name, task()) for name in names)


# -- arrows


def test_an_arrow_ties_two_nodes_and_gives_the_second():
    flow, a, b, c = flow_of("a", "b", "c")

    assert a >> b >> c is c
    assert flow.graph() == {"a": ["b"], "b": ["c"], "c": []}


def test_arrows_tie_several_nodes_on_either_side():
    flow, a, b, c, d = flow_of("a", "b", "c", "d")

    a >> [b, c] >> d
    assert flow.graph() == {"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": []}
    assert entries(flow)["d"]["dependsOn"] == {"targets": ["b", "c"]}


def test_a_list_before_an_arrow_and_arrows_the_other_way():
    _, a, b, c, d = flow_of("a", "b", "c", "d")

    [a, b] >> c
    d << [a, c]

    assert (c.waits_for, d.waits_for) == (("a", "b"), ("a", "c"))


def test_other_ends_than_success_can_be_waited_for():
    flow, a, b, c, d = flow_of("a", "b", "c", "d")

    a.failed >> b
    a.on("Succeeded", "Skipped") >> c
    [a.finished, b] >> d

    found = entries(flow)
    assert found["b"]["dependsOn"] == {"targetsWithStatus": [{"name": "a", "phases": ["Failed"]}]}
    assert found["c"]["dependsOn"] == {"targetsWithStatus": [{"name": "a", "phases": ["Succeeded", "Skipped"]}]}
    assert found["d"]["dependsOn"] == {
        "targets": ["b"],
        "targetsWithStatus": [{"name": "a", "phases": ["Finished"]}],
    }


def test_arrows_that_make_no_sense_are_refused_with_names():
    _, a, b = flow_of("a", "b")
    other = vcnb.Flow("g").add("x", task())

    a >> b
    with pytest.raises(vcnb.VcnbError, match="'b' waits for 'a' twice"):
        a.failed >> b
    with pytest.raises(vcnb.VcnbError, match="cannot wait for itself"):
        a >> a
    with pytest.raises(vcnb.VcnbError, match="'x' is of flow 'g', not of 'f'"):
        other >> a
    with pytest.raises(vcnb.VcnbError, match="it cannot wait; write a alone"):
        b >> a.failed
    with pytest.raises(vcnb.VcnbError, match="tie nodes, not a int"):
        a >> 3
    with pytest.raises(vcnb.VcnbError, match=r"on\(\) needs a phase"):
        a.on()


# -- options


def test_options_become_fields_in_the_manifests_spelling():
    flow, a = flow_of("a")
    node = flow.add(
        "b",
        task(),
        after=[a, "c.failed"],
        when="params.x > 1",
        retry={"limit": 2, "backoff": {"seconds": 1, "max_seconds": 9}, "keep_failed": False},
        allow_failure=True,
        for_each={"items": [{"my_key": 1}], "max_parallel": 2, "tolerate_failures": "10%"},
        outputs={"auc": {"path": "m.auc"}, "n": None},
        strategy="any",
        timeout="2m",
        on_timeout="Skip",
        probe={"http_get_list": [{"task_name": "w", "path": "/", "port": 80}], "period_seconds": 3},
        patch={"queue": "fast"},
    )

    assert node.to_manifest() == {
        "name": "b",
        "dependsOn": {
            "targets": ["a"],
            "strategy": "any",
            "timeoutSeconds": 120,
            "onTimeout": "Skip",
            "probe": {"httpGetList": [{"taskName": "w", "path": "/", "port": 80}], "periodSeconds": 3},
            "targetsWithStatus": [{"name": "c", "phases": ["Failed"]}],
        },
        "when": "params.x > 1",
        "forEach": {"items": [{"my_key": 1}], "maxParallel": 2, "tolerateFailures": "10%"},
        "retry": {"limit": 2, "backoff": {"seconds": 1, "maxSeconds": 9}, "keepFailed": False},
        "allowFailure": True,
        "outputs": {"auc": {"path": "m.auc"}, "n": {}},
        "patch": {"jobSpec": {"queue": "fast"}},
    }


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ([1, "x"], {"items": [1, "x"]}),
        ((1, 2), {"items": [1, 2]}),
        (range(1, 7, 2), {"range": {"start": 1, "end": 7, "step": 2}}),
        ("params.items", {"itemsFrom": "params.items"}),
        ("${{ params.items }}", {"itemsFrom": "params.items"}),
        (
            {"items_from": "${{ params.items }}", "on_failure": "Terminate"},
            {"itemsFrom": "params.items", "onFailure": "Terminate"},
        ),
    ],
)
def test_items_may_be_given_in_several_ways(given, field):
    flow = vcnb.Flow("f")

    assert flow.add("a", task(), for_each=given).to_manifest()["forEach"] == field


def test_numbers_of_numpy_are_items_too():
    numpy = pytest.importorskip("numpy")
    flow = vcnb.Flow("f")

    field = flow.add("a", task(), for_each=numpy.linspace(0, 1, 3)).to_manifest()["forEach"]

    assert field == {"items": [0.0, 0.5, 1.0]}
    assert [type(item) for item in field["items"]] == [float] * 3


def test_options_of_the_wrong_kind_are_refused_with_the_nodes_name():
    flow = vcnb.Flow("f")

    for options in ({"retry": True}, {"retry": "twice"}, {"for_each": 3}, {"loop": 3}, {"timeout": "soon"}):
        with pytest.raises(vcnb.VcnbError, match="node 'a'"):
            flow.add("a", task(), **options)
    assert len(flow) == 0


def test_settings_of_the_flow():
    flow = vcnb.Flow(
        "f",
        params={"x": 1},
        namespace="team",
        failure_policy="Continue",
        max_parallel=3,
        deadline="1h",
        retain=False,
        suspend=True,
        queue="fast",
        priority_class_name="high",
        plugins=["svc"],
        labels={"team": "a"},
    )
    flow.add("a", task())
    flow.add("b", task())
    flow.gang("pair", ["a", "b"], timeout=60)

    made = objects(flow)["JobFlow/f"]

    assert made["metadata"] == {"name": "f", "namespace": "team", "labels": {"team": "a"}}
    assert {key: value for key, value in made["spec"].items() if key != "flows"} == {
        "params": {"x": 1},
        "failurePolicy": "Continue",
        "maxParallel": 3,
        "activeDeadlineSeconds": 3600,
        "jobRetainPolicy": "delete",
        "suspend": True,
        "plugins": {"svc": []},
        "scheduling": {
            "queue": "fast",
            "priorityClassName": "high",
            "gangs": [{"name": "pair", "nodes": ["a", "b"], "timeoutSeconds": 60}],
        },
    }
    assert {item["metadata"]["namespace"] for item in flow.to_manifest()["items"]} == {"team"}


# -- switch


def test_a_switch_names_its_branches_and_they_wait_for_it():
    flow, big, quick, _ = flow_of("big", "quick", "other", params={"mode": "quick"})

    flow.switch("pick", on="params.mode", cases={"full": big, "quick": [quick, "other"]}, default=[])

    found = entries(flow)
    assert found["pick"]["switch"] == {
        "on": "params.mode",
        "cases": [
            {"name": "full", "value": "full", "next": ["big"]},
            {"name": "quick", "value": "quick", "next": ["quick", "other"]},
        ],
        "default": [],
    }
    assert [found[name]["dependsOn"] for name in ("big", "quick", "other")] == [{"targets": ["pick"]}] * 3
    assert "templateRef" not in found["pick"]


def test_a_switch_by_conditions():
    flow, a, b = flow_of("a", "b")

    flow.switch(
        "pick", cases=[{"when": "1 > 2", "next": a}, {"name": "else", "when": "true", "next": [b]}], no_match="Skip"
    )

    assert entries(flow)["pick"]["switch"] == {
        "cases": [{"when": "1 > 2", "next": ["a"]}, {"name": "else", "when": "true", "next": ["b"]}],
        "noMatch": "Skip",
    }
    with pytest.raises(vcnb.VcnbError, match="'none' has no cases"):
        flow.switch("none", on="1")
    with pytest.raises(vcnb.VcnbError, match="next="):
        flow.switch("next", on="1", cases=[{"value": 1}])


# -- what a node runs


def test_a_job_becomes_a_template_that_is_called_after_flow_and_node():
    flow = vcnb.Flow("f")
    flow.add(vcnb.Job(name="prepare", tasks=[task()], queue="q"))

    assert list(objects(flow)) == ["JobTemplate/f-prepare", "JobFlow/f"]
    assert objects(flow)["JobTemplate/f-prepare"]["spec"]["queue"] == "q"
    assert entries(flow)["prepare"] == {"name": "prepare", "templateRef": "f-prepare"}


def test_a_portable_flow_has_only_what_volcano_knows():
    flow = vcnb.Flow("f", portable=True)
    flow.add("a", task()) >> flow.add("b", task())

    assert entries(flow) == {"a": {"name": "a"}, "b": {"name": "b", "dependsOn": {"targets": ["a"]}}}
    assert "JobTemplate/a" in objects(flow)


@pytest.mark.parametrize(
    "work",
    [
        task(),
        [task()],
        vcnb.Job(name="x", tasks=[task()]),
        vcnb.JobTemplate(tasks=[task()]),
        vcnb.Job(name="x", tasks=[task()]).to_manifest(),
        {"tasks": [task().to_manifest()]},
    ],
)
def test_work_in_every_form_gives_the_same_tasks(work):
    flow = vcnb.Flow("f")
    flow.add("a", work)

    assert objects(flow)["JobTemplate/f-a"]["spec"]["tasks"] == [task().to_manifest()]


def test_templates_with_names_of_their_own_keep_them_and_may_be_shared():
    flow = vcnb.Flow("f")
    shared = vcnb.JobTemplate("shared", tasks=[task()])
    flow.add("a", shared)
    flow.add("b", shared)
    flow.add("c", "elsewhere")
    flow.add("elsewhere")

    assert list(objects(flow)) == ["JobTemplate/shared", "JobFlow/f"]
    assert [node.get("templateRef") for node in entries(flow).values()] == ["shared", "shared", "elsewhere", None]


def test_two_different_templates_of_one_name_are_refused():
    flow = vcnb.Flow("f")
    flow.add("a", vcnb.JobTemplate("t", tasks=[task("true")]))
    flow.add("b", vcnb.JobTemplate("t", tasks=[task("false")]))

    with pytest.raises(vcnb.VcnbError, match="nodes 'a' and 'b' both bring a JobTemplate 't'"):
        flow.to_manifest()


def test_a_cache_node_has_no_template():
    flow = vcnb.Flow("f")
    flow.add("load", cache={"load": {"path": "s3://b/x", "batch_size": 10, "storage_options": {"my_key": 1}}})

    assert entries(flow)["load"]["cache"] == {
        "load": {"path": "s3://b/x", "batchSize": 10, "storageOptions": {"my_key": 1}}
    }
    assert list(objects(flow)) == ["JobFlow/f"]
    with pytest.raises(vcnb.VcnbError, match="'both' has a job and a cache load"):
        flow.add("both", task(), cache={"free": {"path": "/x"}})


def test_what_cannot_be_run_is_refused_with_the_nodes_name():
    flow = vcnb.Flow("f")
    flow.add("a", task())

    for work in (3, {"kind": "Queue", "metadata": {"name": "q"}}, {"no": "tasks"}):
        with pytest.raises(vcnb.VcnbError, match="node 'b' cannot run"):
            flow.add("b", work)
    with pytest.raises(vcnb.VcnbError, match="has a node 'a' already"):
        flow.add("a", task())
    with pytest.raises(vcnb.VcnbError, match="needs a name"):
        flow.add([task()])
    with pytest.raises(vcnb.VcnbError, match="args and options are for functions"):
        flow.add("b", task(), args={"x": 1})
    with pytest.raises(vcnb.VcnbError, match="args and options are for functions"):
        flow.add("b", args={"x": 1})
    with pytest.raises(vcnb.VcnbError, match="no node 'aa'; did you mean 'a'"):
        flow["aa"]
    assert "a" in flow
    assert [node.name for node in flow] == ["a"]


# -- expressions


def test_expressions_in_a_job_stand_in_the_nodes_patch_too():
    flow = vcnb.Flow("f", params={"n": 3})
    flow.add("a", [task("echo ${{ params.n }}"), task("true", name="other")], env={"N": flow.param("n"), "PLAIN": 1})

    container = {
        "name": "w",
        "command": ["sh", "-c", "echo ${{ params.n }}"],
        "env": [{"name": "N", "value": "${{ params.n }}"}],
    }
    other = {"name": "other", "env": [{"name": "N", "value": "${{ params.n }}"}]}
    assert entries(flow)["a"]["patch"]["jobSpec"] == {
        "tasks": [
            {"name": "w", "template": {"spec": {"containers": [container]}}},
            {"name": "other", "template": {"spec": {"containers": [other]}}},
        ]
    }
    made = objects(flow)["JobTemplate/f-a"]["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
    assert {"name": "PLAIN", "value": "1"} in made["env"]


def test_a_patch_of_ones_own_wins_over_what_expressions_need():
    flow = vcnb.Flow("f", params={"n": 3})
    flow.add("a", task("${{ params.n }}"), patch={"queue": "${{ params.n }}", "tasks": [{"name": "w", "replicas": 2}]})

    patch = entries(flow)["a"]["patch"]["jobSpec"]

    assert patch["queue"] == "${{ params.n }}"
    assert patch["tasks"][0]["replicas"] == 2
    assert patch["tasks"][0]["template"]["spec"]["containers"][0]["command"][2] == "${{ params.n }}"


def test_env_needs_the_job_itself():
    flow = vcnb.Flow("f")
    flow.add("a", "elsewhere", env={"X": "1"})

    with pytest.raises(vcnb.VcnbError, match="node 'a': env needs the job itself"):
        flow.to_manifest()


def test_names_for_expressions():
    flow, a, b = flow_of("a", "train-b")

    assert a.output("auc") == "${{ flows.a.outputs.auc }}"
    assert b.output("best-auc") == '${{ flows["train-b"].outputs["best-auc"] }}'
    assert b.path("phase") == 'flows["train-b"].phase'
    assert flow.param("lr", 0.1) == "${{ params.lr }}"
    assert flow.params == {"lr": 0.1}


def test_pure_parts_of_expressions():
    assert only_parameter("${{ params.lr }}") == "lr"
    assert only_parameter("x ${{ params.lr }}") is None
    assert only_parameter(3) is None
    assert exact("${{ item }}") == "${{ [item] }}"
    assert exact("a ${{ item }}") == "a ${{ item }}"
    assert lifted({"queue": "q", "tasks": [{"name": "w", "replicas": 1}]}) == {}
    assert lifted({"volumes": [{"mountPath": "/${{ item }}"}, {"mountPath": "/x"}]}) == {
        "volumes": [{"mountPath": "/${{ item }}"}, {"mountPath": "/x"}]
    }
    assert with_environment({"tasks": []}, {"A": None}) == {"tasks": []}


# -- submitting


def test_submitting_a_flow_gives_its_handle_and_runs_it(cluster):
    flow, a, b = flow_of("a", "b")
    a >> b

    handle = cluster.submit(flow)
    end(cluster, "f-a")
    end(cluster, "f-b")

    assert isinstance(handle, vcnb.FlowHandle)
    assert handle.wait().phase == "Succeed"
    assert [each.name for each in cluster.templates] == ["f-a", "f-b"]


def test_expressions_are_computed_when_the_job_is_made(cluster):
    flow = vcnb.Flow("f", params={"n": 3, "x": "7"})
    flow.add(
        "a", task("echo ${{ params.n }} ${{ item }}"), for_each=["p"], env={"N": flow.param("n"), "X": flow.param("x")}
    )

    cluster.submit(flow)

    container = cluster.jobs["f-a-0"].spec["tasks"][0]["template"]["spec"]["containers"][0]
    env = {entry["name"]: entry["value"] for entry in container["env"]}
    assert container["command"] == ["sh", "-c", "echo 3 p"]
    assert (env["N"], env["X"]) == ("3", "7")


def test_templates_go_with_the_flow_and_the_same_flow_can_be_submitted_again(cluster):
    flow, _ = flow_of("a")
    handle = cluster.submit(flow)

    assert cluster.templates["f-a"].object["metadata"]["ownerReferences"][0]["uid"] == handle.uid
    with pytest.raises(vcnb.AlreadyExists, match="jobflow 'f' exists already"):
        cluster.submit(flow)
    handle.delete()
    cluster.simulator.reap()
    assert len(cluster.templates) == 0

    assert cluster.submit(flow).uid != handle.uid


def test_a_template_of_an_earlier_flow_of_that_name_is_replaced(cluster):
    flow, _ = flow_of("a")
    cluster.simulator.collect_garbage = False
    cluster.submit(flow).delete()
    again = vcnb.Flow("f")
    again.add("a", task("echo new"))

    cluster.submit(again)

    assert "echo new" in yaml.safe_dump(cluster.templates["f-a"].object)


def test_a_template_of_somebody_else_is_never_replaced(cluster):
    cluster.submit(template("f-a"))
    flow, _ = flow_of("a")

    with pytest.raises(vcnb.AlreadyExists, match=r"'f-a'.*belongs to something else"):
        cluster.submit(flow)
    assert len(cluster.flows) == 0


def test_flows_and_other_objects_together(cluster):
    flow, _ = flow_of("a")
    queue = vcnb.Queue("fast")

    handles = cluster.submit([queue, flow, vcnb.Job(name="j", tasks=[task()])])

    assert [handle.kind for handle in handles] == ["Queue", "JobFlow", "Job"]


def test_problems_are_told_with_the_names_of_nodes_and_nothing_is_stored(cluster):
    flow = vcnb.Flow("f")
    flow.add("good", task())
    flow.add("bad", task(), when="params.nope", retry={"limt": 1})
    flow.add("worse", vcnb.Job(name="x", tasks=[task(name="UPPER")]))

    with pytest.raises(vcnb.InvalidObject) as caught:
        cluster.submit(flow)

    text = str(caught.value)
    assert "spec.flows[1].when: node 'bad': 'params.nope'" in text
    assert "spec.flows[1].retry.limt: node 'bad'" in text
    assert "node 'worse'" in text
    assert (len(cluster.flows), len(cluster.templates)) == (0, 0)


def test_a_circle_is_refused_with_its_path(cluster):
    flow, a, b = flow_of("a", "b")
    a >> b >> a

    with pytest.raises(vcnb.InvalidObject, match="wait for each other"):
        cluster.submit(flow)


def test_a_flow_as_yaml_can_be_applied(cluster):
    flow, a, b = flow_of("a", "b")
    a >> b

    text = flow.to_yaml()

    assert [document["kind"] for document in yaml.safe_load_all(text)] == ["JobTemplate", "JobTemplate", "JobFlow"]
    assert [handle.name for handle in cluster.apply(text)] == ["f-a", "f-b", "f"]
    assert cluster.validate(vcnb.Job(name="j", tasks=[task()])) == []


def test_a_flow_shows_what_waits_for_what():
    flow, a, b = flow_of("a", "b", params={"x": 1})
    a >> b

    assert repr(flow) == "<Flow f params {'x': 1}: a; b < a>"
    assert repr(b) == "<node b of flow f after a>"
    assert repr(a.failed) == "a.Failed"
    assert repr(vcnb.Flow("g")) == "<Flow g: no nodes yet>"


def test_what_belongs_to_a_template_as_ours_goes_to_its_jobs(cluster):
    made = template("t")
    made["metadata"]["annotations"] = {"vcnb/run": "mine", "other": "not"}
    flow = vcnb.Flow("f")
    flow.add("a", made)

    cluster.submit(flow)

    annotations = cluster.jobs["f-a"].annotations
    assert annotations["vcnb/run"] == "mine"
    assert "other" not in annotations


def test_a_large_flow_is_built_and_submitted_in_one_go(cluster):
    flow, before = vcnb.Flow("f"), []
    for layer in range(20):
        nodes = [flow.add(f"n{layer}-{place}", task()) for place in range(10)]
        for node in nodes if before else ():
            before >> node
        before = nodes

    handle = cluster.submit(flow)

    assert len(handle.nodes) == 200
    assert handle.nodes["n19-0"].after == tuple(f"n18-{place}" for place in range(10))
    assert sum(map(len, flow.graph().values())) == 1900

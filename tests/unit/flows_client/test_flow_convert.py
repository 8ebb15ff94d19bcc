"""vcnb.template_from_job and vcnb.job_from_template."""

import pytest

import vcnb
from unit.flows_client.flow_samples import task, template


@pytest.fixture
def cluster():
    with vcnb.connect("memory://?runtime=simulated&clock=virtual") as made:
        yield made


def test_a_round_trip_keeps_the_spec_and_marks_the_job(cluster):
    job = cluster.submit(vcnb.Job(name="j", tasks=[task()], labels={"team": "a"}))

    made = vcnb.template_from_job(job)
    back = vcnb.job_from_template(made, "again")

    assert made["metadata"] == {"name": "j", "namespace": "default", "labels": {"team": "a"}}
    assert made["spec"] == job.spec == back["spec"]
    assert back["metadata"]["labels"] == {"volcano.sh/createdByJobTemplate": "default.j"}
    assert cluster.submit(back).phase == "Pending"


def test_a_template_can_be_made_from_a_builder_a_mapping_or_text():
    job = vcnb.Job(name="j", tasks=[task()])
    text = "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: j}\nspec: {tasks: []}\n"

    assert vcnb.template_from_job(job) == vcnb.template_from_job(job.to_manifest())
    assert vcnb.template_from_job(text, "t")["metadata"] == {"name": "t"}
    assert vcnb.job_from_template(template("t"))["metadata"]["name"].startswith("t-")


def test_what_is_no_single_job_or_template_is_refused():
    with pytest.raises(vcnb.VcnbError, match="a Job is needed, this is a JobTemplate"):
        vcnb.template_from_job(template("t"))
    with pytest.raises(vcnb.VcnbError, match="a JobTemplate is needed"):
        vcnb.job_from_template(vcnb.Job(name="j", tasks=[task()]))
    with pytest.raises(vcnb.VcnbError, match="has no name"):
        vcnb.template_from_job(vcnb.Job(generate_name="j-", tasks=[task()]))
    with pytest.raises(vcnb.VcnbError, match=r"no metadata\.name"):
        vcnb.job_from_template({**template("t"), "metadata": {}})
    with pytest.raises(vcnb.VcnbError, match="2 objects"):
        vcnb.template_from_job([template("a"), template("b")])
    with pytest.raises(vcnb.InvalidObject, match="metadata"):
        vcnb.template_from_job({"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"})

"""What a Status of an API server means, in words; no server is needed."""

from __future__ import annotations

from typing import Any

import pytest

from vcnb.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Expired,
    Forbidden,
    InternalError,
    InvalidObject,
    MissingKind,
    NotFound,
    QuotaExceeded,
    ServerTimeout,
    TooManyRequests,
    Unauthorized,
    Unreachable,
    VcnbError,
)
from vcnb.resources.kinds import JOB, NODE, POD
from vcnb.store.kubernetes import Call
from vcnb.store.kubernetes.refusals import refusal, status_of

CREATE = Call("create", JOB, "ml", "train")
SERVER = "https://cluster:6443 (context 'prod' of /home/me/.kube/config)"

CASES: list[tuple[str, Call, dict[str, Any], type[VcnbError], str]] = [
    (
        "gone",
        Call("watch", JOB),
        {"code": 410, "reason": "Expired", "message": "too old resource version: 5 (9)"},
        Expired,
        "too old resource version: 5 (9)",
    ),
    (
        "busy",
        CREATE,
        {"code": 429, "reason": "TooManyRequests", "message": "please retry"},
        TooManyRequests,
        "create jobs.batch.volcano.sh 'train' in namespace 'ml': the API server has too much to do: please retry",
    ),
    (
        "slow",
        CREATE,
        {"code": 504, "reason": "Timeout", "message": "request did not complete"},
        ServerTimeout,
        "it may or may not have been carried out",
    ),
    (
        "slow, said otherwise",
        CREATE,
        {"code": 500, "reason": "ServerTimeout", "message": "the server cannot complete it"},
        ServerTimeout,
        "it may or may not have been carried out",
    ),
    (
        "away",
        CREATE,
        {"code": 503, "reason": "ServiceUnavailable", "message": "apiserver is shutting down"},
        Unreachable,
        "the API server is not available: apiserver is shutting down",
    ),
    (
        "broken",
        CREATE,
        {"code": 500, "reason": "InternalError", "message": "etcdserver: no leader"},
        InternalError,
        "etcdserver: no leader",
    ),
    (
        "webhook away",
        CREATE,
        {"code": 500, "reason": "InternalError", "message": 'failed calling webhook "v.volcano.sh": no route to host'},
        InternalError,
        "the API server cannot ask admission webhook v.volcano.sh; ask the administrator",
    ),
    (
        "webhook refuses, whatever its code",
        CREATE,
        {"code": 403, "message": 'admission webhook "validatejob.volcano.sh" denied the request: job min available 3'},
        InvalidObject,
        "Job ml/train is invalid: 1 problem\n  admission webhook validatejob.volcano.sh refuses it: job min available 3",
    ),
    (
        "webhook refuses in silence",
        CREATE,
        {"code": 400, "message": 'admission webhook "v" denied the request without explanation'},
        InvalidObject,
        "admission webhook v refuses it: ",
    ),
    (
        "pod security",
        Call("create", POD, "ml", "p"),
        {
            "code": 403,
            "reason": "Forbidden",
            "message": 'pods "p" is forbidden: violates PodSecurity "restricted:latest"',
        },
        Forbidden,
        'violates PodSecurity "restricted:latest"',
    ),
    (
        "quota",
        Call("create", POD, "ml", "p"),
        {"code": 403, "reason": "Forbidden", "message": 'pods "p" is forbidden: exceeded quota: q, used: pods=10'},
        QuotaExceeded,
        "exceeded quota: q, used: pods=10; delete what is no longer needed, or ask the administrator for a larger quota",
    ),
    (
        "cluster wide",
        Call("list", NODE),
        {"code": 403, "reason": "Forbidden", "message": 'nodes is forbidden: User "me" cannot list resource "nodes"'},
        Forbidden,
        "user 'me' may not list nodes in the whole cluster; ask the administrator for a ClusterRole",
    ),
    (
        "there",
        CREATE,
        {"code": 409, "reason": "AlreadyExists", "message": 'jobs "train" already exists'},
        AlreadyExists,
        "Job ml/train already exists",
    ),
    (
        "changed",
        CREATE,
        {"code": 409, "reason": "Conflict", "message": "the object has been modified; please apply"},
        Conflict,
        "Job ml/train has changed since it was read; read it again",
    ),
    (
        "no object",
        CREATE,
        {"code": 404, "reason": "NotFound", "message": "x", "details": {"name": "train", "kind": "jobs"}},
        NotFound,
        "Job ml/train not found",
    ),
    (
        "no kind",
        CREATE,
        {"code": 404, "message": "404 page not found", "plain": True},
        MissingKind,
        f"{SERVER} has no kind Job (batch.volcano.sh/v1alpha1): Volcano's custom resource definitions are not installed",
    ),
    (
        "no kind of Kubernetes' own",
        Call("list", POD),
        {"code": 404, "message": "404 page not found", "plain": True},
        MissingKind,
        "has no kind Pod (v1): it is of another version than vcnb knows",
    ),
    (
        "no subresource",
        Call("update", POD, "ml", "p", "status"),
        {"code": 404, "message": "the server could not find the requested resource", "details": {}},
        NotFound,
        "Pod has no status subresource on https://cluster:6443",
    ),
    ("nobody", CREATE, {"code": 401, "message": "Unauthorized"}, Unauthorized, f"{SERVER} does not accept"),
    (
        "a redirection",
        CREATE,
        {"code": 302, "plain": True},
        Unreachable,
        "is there a proxy before it that wants a login?",
    ),
    ("a teapot", CREATE, {"code": 418, "message": "short and stout"}, InternalError, "short and stout"),
    ("nothing at all", CREATE, {}, InternalError, "HTTP 500"),
]


@pytest.mark.parametrize(
    ("call", "status", "error", "said"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_what_a_status_means(call: Call, status: dict[str, Any], error: type[VcnbError], said: str) -> None:
    found = refusal(call, status, SERVER)
    assert type(found) is error
    assert said in str(found)
    if isinstance(found, ApiError):
        assert found.ref == call.ref


def test_causes_are_problems_with_their_paths() -> None:
    causes = [{"field": "spec.tasks[0].replicas", "message": "must be positive"}, {"message": "and more"}]
    found = refusal(CREATE, {"code": 422, "reason": "Invalid", "message": "m", "details": {"causes": causes}}, SERVER)
    assert isinstance(found, InvalidObject)
    assert [(problem.path, problem.message) for problem in found.errors] == [
        ("spec.tasks[0].replicas", "must be positive"),
        ("", "and more"),
    ]


def test_an_answer_that_is_no_status_is_taken_as_text() -> None:
    assert status_of(502, b"<html>Bad gateway</html>")["message"] == "<html>Bad gateway</html>"
    assert status_of(404, b'{"some": "json"}')["plain"] is True
    assert status_of(404, b'{"kind": "Status", "code": 404, "message": "m"}')["message"] == "m"
    assert isinstance(refusal(CREATE, status_of(502, b"\xff\x00"), SERVER), Unreachable)


def test_paths_are_those_of_the_api() -> None:
    assert Call("get", JOB, "ml", "train").path == "/apis/batch.volcano.sh/v1alpha1/namespaces/ml/jobs/train"
    assert Call("list", JOB).path == "/apis/batch.volcano.sh/v1alpha1/jobs"
    assert Call("get", NODE, "", "n1").path == "/api/v1/nodes/n1"
    assert Call("patch", POD, "ml", "p", "status").object_path == "/api/v1/namespaces/ml/pods/p/status"
    for name in ("", ".", "..", "a/b", "a%2Fb"):
        with pytest.raises(InvalidObject):
            _ = Call("delete", POD, "ml", name).object_path

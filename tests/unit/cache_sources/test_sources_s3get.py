"""Requests to S3 that are signed without boto: the same signature, and boto's way wherever something is unusual."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from vcnb.cache.sources.s3 import _is_plain
from vcnb.cache.sources.s3get import DirectGet, Manner, manner_of, signed

URLS = [
    "https://bucket.s3.eu-west-1.amazonaws.com/d/x",
    "http://127.0.0.1:9000/bucket/d/a%20b/%C3%BC%2520/..//x~%23%3F%2A",
    "https://minio.example/bucket/x",
]
MOMENT = datetime(2026, 3, 1, 4, 5, 6, tzinfo=UTC)


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("token", ["", "a/session+token=="])
def test_the_signature_is_botos(url: str, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from botocore import auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    monkeypatch.setattr(auth, "get_current_datetime", lambda: MOMENT.replace(tzinfo=None), raising=False)
    request = AWSRequest("GET", url, headers={"X-Amz-Content-SHA256": "UNSIGNED-PAYLOAD"})
    request.context["client_config"] = None
    request.context["payload_signing_enabled"] = False
    signer = auth.S3SigV4Auth(Credentials("AKID", "secret/key", token or None), "s3", "eu-west-1")
    signer.payload = lambda _: "UNSIGNED-PAYLOAD"
    signer.add_auth(request)
    stamp = request.context["timestamp"]
    moment = datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    assert (
        signed(url, "eu-west-1", "AKID", "secret/key", token, moment)["Authorization"]
        == request.headers["Authorization"]
    )


AUTHORIZATION = "AWS4-HMAC-SHA256 Credential=AKID/20260301/us-east-2/s3/aws4_request, SignedHeaders=host, Signature=00"


def test_what_a_request_of_boto_tells() -> None:
    headers: dict[str, Any] = {"Authorization": AUTHORIZATION.encode(), "X-Amz-Date": "now"}
    assert manner_of("b", "https://b.s3.amazonaws.com/k", headers) == Manner("https://b.s3.amazonaws.com/", "us-east-2")
    assert manner_of("b", "http://h:9000/b/d/k", headers) == Manner("http://h:9000/b/", "us-east-2")
    assert manner_of("b", "http://h:9000/b/d/k", {}) == Manner("http://h:9000/b/", "")


@pytest.mark.parametrize(
    ("url", "headers"),
    [
        ("http://h/other/k", {}),
        ("http://h/b/k?versionId=1", {}),
        ("http://h/b/k", {"x-amz-request-payer": "requester"}),
        ("http://h/b/k", {"x-amz-server-side-encryption-customer-key": "k"}),
        ("http://h/b/k", {"Authorization": "AWS AKID:old"}),
        ("http://h/b/k", {"Authorization": AUTHORIZATION.replace("HMAC", "ECDSA-P256")}),
    ],
)
def test_what_is_not_plain_goes_botos_way(url: str, headers: dict[str, str]) -> None:
    assert manner_of("b", url, headers) is None


@pytest.mark.parametrize(
    "options",
    [
        {"client_kwargs": {"verify": False}},
        {"requester_pays": True},
        {"s3_additional_kwargs": {"SSECustomerKey": "k"}},
        {"profile": "other"},
        {"session": object()},
    ],
)
def test_options_that_change_requests_go_botos_way(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert _is_plain({"key": "k", "secret": "s", "endpoint_url": "http://h", "client_kwargs": {"region_name": "r"}})
    assert not _is_plain(options)


def test_behind_a_proxy_it_is_botos_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    assert not _is_plain({})


def test_once_refused_it_is_not_tried_again() -> None:
    direct = DirectGet(1.0)
    direct._seen = ("http://h/b/k", {})
    assert not direct.knows("b")
    direct.learn("b")
    assert direct.knows("b")
    assert not direct.knows("c")
    direct.give_up()
    assert not direct.knows("b")

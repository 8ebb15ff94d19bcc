"""Which proxy leads to a server, and an identity provider that renews a token."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from aiohttp import web

from vcnb.store.kubernetes.login import Login, log_in


@pytest.mark.parametrize(
    ("server", "environment", "own", "proxy"),
    [
        ("https://cluster:6443", {}, None, None),
        ("https://cluster:6443", {"https_proxy": "http://proxy:3128"}, None, "http://proxy:3128"),
        ("https://cluster:6443", {"HTTPS_PROXY": "http://proxy:3128"}, "http://own:1", "http://own:1"),
        ("https://cluster:6443", {"http_proxy": "http://proxy:3128"}, None, None),
        ("https://cluster:6443", {"all_proxy": "http://proxy:3128"}, None, "http://proxy:3128"),
        ("https://a.cluster:6443", {"https_proxy": "http://p", "no_proxy": ".cluster,x"}, None, None),
        ("https://10.1.2.3:6443", {"https_proxy": "http://p", "no_proxy": "x,10.0.0.0/8"}, None, None),
        ("https://11.1.2.3:6443", {"https_proxy": "http://p", "no_proxy": "x,10.0.0.0/8"}, None, "http://p"),
        ("https://cluster:6443", {"https_proxy": "http://p", "no_proxy": "*"}, None, None),
    ],
)
def test_the_proxy_is_the_kubeconfigs_or_the_environments(
    server: str, environment: dict[str, str], own: str | None, proxy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    login = Login(SimpleNamespace(proxy=own), server, "default", server)
    assert login.proxy == proxy


def token(expires: float) -> str:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": int(expires)}).encode()).decode().rstrip("=")
    return f"e30.{claims}.signature"


# The official client's own way to an identity provider uses what aiohttp and Python 3.12 will no longer have.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_identity_provider_renews_a_token_and_the_kubeconfig_keeps_it(tmp_path: Path) -> None:
    fresh = token(time.time() + 3600)
    kubeconfig = tmp_path / "config"
    forms: list[str] = []

    async def play() -> None:
        async def known(request: web.Request) -> web.Response:
            return web.json_response({"token_endpoint": f"{url}/token"})

        async def renewed(request: web.Request) -> web.Response:
            forms.append((await request.post())["refresh_token"])
            return web.json_response({"id_token": fresh, "refresh_token": "second"})

        application = web.Application()
        application.router.add_get("/.well-known/openid-configuration", known)
        application.router.add_post("/token", renewed)
        runner = web.AppRunner(application, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        provider = {
            "client-id": "me",
            "client-secret": "s",
            "idp-issuer-url": url,
            "id-token": token(1000),
            "refresh-token": "first",
        }
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
            "users": [{"name": "u", "user": {"auth-provider": {"name": "oidc", "config": provider}}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        }
        kubeconfig.write_text(json.dumps(config))
        try:
            for _ in range(2):
                login = await log_in(None, str(kubeconfig))
                assert await login.headers() == {"authorization": f"Bearer {fresh}"}
        finally:
            await runner.cleanup()

    asyncio.run(play())
    assert forms == ["first"], "the renewed token was kept, so it is asked for once"
    assert "second" in kubeconfig.read_text()

"""The shared token: where it comes from, and that it does not show."""

from __future__ import annotations

from pathlib import Path

import pytest

from vcnb.cache.remote.secret import TOKEN, TOKEN_FILE, Token
from vcnb.cache.remote.serving import Listen
from vcnb.errors import VcnbError

SECRET = "s3cret-s3cret-s3cret"


def token_file(path: Path, text: str = f"{SECRET}\n", mode: int = 0o600) -> Path:
    file = path / "token"
    file.write_text(text)
    file.chmod(mode)
    return file


def test_a_token_of_a_file_and_of_the_environment(tmp_path: Path) -> None:
    file = token_file(tmp_path)
    for token in (
        Token.of_file(file),
        Token.need(None, {TOKEN: SECRET}),
        Token.need(None, {TOKEN_FILE: str(file)}),
        Token.need(file, {TOKEN: "x" * 20}),
    ):
        assert token.headers == {"Authorization": f"Bearer {SECRET}"}
        assert token.matches(f"Bearer {SECRET}")


@pytest.mark.parametrize("header", [None, "", SECRET, f"bearer {SECRET}", f"Bearer {SECRET}x", "Bearer \udcff"])
def test_nothing_else_matches(header: str | None) -> None:
    assert not Token(SECRET).matches(header)


def test_no_token_at_all_says_how_to_make_one() -> None:
    assert Token.find(None, {}) is None
    with pytest.raises(VcnbError, match=r"--token-file FILE.*urandom"):
        Token.need(None, {})


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_file_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(VcnbError, match="chmod 600"):
        Token.of_file(token_file(tmp_path, mode=mode))


@pytest.mark.parametrize("text", ["", "short", "with blanks in it, and long", "two\nlines-of-text-here", "ü" * 20])
def test_what_is_no_token_is_refused_without_showing_it(tmp_path: Path, text: str) -> None:
    with pytest.raises(VcnbError) as error:
        Token.of_file(token_file(tmp_path, text))
    assert "token file" in str(error.value)
    assert not text or text not in str(error.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(VcnbError, match="none cannot be read: No such file"):
        Token.of_file(tmp_path / "none")


def test_the_token_does_not_show() -> None:
    assert SECRET not in repr(Token(SECRET))


def test_who_has_the_token_can_open_what_it_sealed() -> None:
    sealed = Token(SECRET).seal().seal({"key": "AKIA", "secret": "hush"})
    assert "hush" not in str(sealed)
    assert Token(SECRET).seal().open(sealed) == {"key": "AKIA", "secret": "hush"}
    with pytest.raises(ValueError, match="another key"):
        Token("x" * 20).seal().open(sealed)


@pytest.mark.parametrize(
    ("text", "host", "port", "loopback"),
    [
        (":0", "127.0.0.1", 0, True),
        ("127.0.0.1:28080", "127.0.0.1", 28080, True),
        ("localhost:1", "localhost", 1, True),
        ("[::1]:80", "::1", 80, True),
        ("0.0.0.0:28080", "0.0.0.0", 28080, False),
        ("worker-1.example:28080", "worker-1.example", 28080, False),
    ],
)
def test_where_a_server_listens(text: str, host: str, port: int, loopback: bool) -> None:
    listen = Listen(text)
    assert (listen.host, listen.port, listen.loopback) == (host, port, loopback)


@pytest.mark.parametrize("text", ["", "28080", "host", "host:", "host:99999", "::1:80", "http://host:80", "a:b"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(VcnbError, match="HOST:PORT"):
        Listen(text)

"""What is sent to the pods: checked for what cannot be pickled, for its size, and run by a Python that knows no vcnb."""

import base64
import os
import pickle
import random
import subprocess
import sys
import threading
import zlib

import pytest

from vcnb.client.functions.payload import LOADER, arguments_of, pack_calls, unpack
from vcnb.client.functions.wire import PAYLOAD_LIMIT, Reader
from vcnb.errors import PayloadError

LOCK = threading.Lock()
TABLE = random.Random(1).randbytes(900_000)
NUMBERS = list(range(10))


class Session:
    def __init__(self):
        self.inner = {"lock": threading.Lock()}


SESSION = Session()


def square(x):
    return x * x


def takes_lock(x):
    with LOCK:
        return x


def takes_session(x):
    return SESSION, x


def takes_table():
    return len(TABLE), NUMBERS


def once(*args, **kwargs):
    return [(args, kwargs)]


def run_pod(packed, env=None, options=("-I",), **changes):
    """What a pod would do with a payload, in a Python that finds neither vcnb nor this test."""
    call = pickle.loads(zlib.decompress(base64.b64decode("".join(packed.chunks)))) | changes
    text = base64.b64encode(zlib.compress(pickle.dumps(call, 4))).decode()
    ran = subprocess.run(
        [sys.executable, *options, "-c", LOADER],
        env={"VCNB_CALL_0": text, "VCNB_CALL_PARTS": "1", "PATH": os.environ["PATH"], **(env or {})},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    (message,) = Reader(packed.nonce).messages(ran.stdout)
    return message, ran


def test_a_function_of_a_module_that_is_not_installed_travels_whole():
    message, ran = run_pod(pack_calls(square, once(7)))

    assert (pickle.loads(message["value"]), ran.returncode) == (49, 0)


def test_a_global_variable_that_cannot_be_pickled_is_named():
    with pytest.raises(PayloadError, match=r"the global variable 'LOCK' is a lock, which cannot be pickled"):
        pack_calls(takes_lock, once(1))


def test_a_part_deep_inside_is_named_with_the_way_to_it():
    with pytest.raises(PayloadError, match=r"'SESSION', attribute 'inner', \['lock'\] is a lock"):
        pack_calls(takes_session, once(1))


def test_a_variable_of_the_function_around_it_is_named():
    held = threading.Lock()

    with pytest.raises(PayloadError, match="the variable 'held' of the function around it is a lock"):
        pack_calls(lambda: [held], once())


def test_an_argument_is_named_by_its_item():
    items = [((1,), {}), ((LOCK,), {})]

    with pytest.raises(PayloadError, match="arguments of item 1 cannot be sent"):
        pack_calls(square, items)


def test_a_payload_that_is_too_large_says_its_size_the_limit_what_it_is_and_what_to_do():
    with pytest.raises(PayloadError) as error:
        pack_calls(takes_table, once())

    text = str(error.value)
    for part in ("'takes_table'", "KiB after compression", "768 KiB fit", "'TABLE' (878.9 KiB)", "pass its path"):
        assert part in text


def test_arguments_that_are_too_large_are_named_by_the_largest():
    items = [((1,), {}), ((TABLE,), {})]

    with pytest.raises(PayloadError, match="the largest are those of item 1"):
        pack_calls(square, items)


def test_a_payload_fits_into_a_secret_and_its_pieces_into_environment_variables():
    packed = pack_calls(square, once(TABLE[: PAYLOAD_LIMIT - 40_000]))
    secret = packed.secret("default", "job")

    sizes = [len(base64.b64decode(value)) for value in secret["data"].values()]
    assert sum(sizes) <= 1024 * 1024
    assert max(sizes) < 128 * 1024 - 100
    assert set(packed.env("s")) == {f"VCNB_CALL_{n}" for n in range(len(sizes))} | {"VCNB_CALL_PARTS"}


def test_arguments_can_be_read_back_from_the_secret():
    packed = pack_calls(square, [((1,), {}), ((), {"x": 2})])

    assert arguments_of(unpack(packed.secret("default", "job"))) == [((1,), {}), ((), {"x": 2})]


def test_a_pod_without_cloudpickle_gets_that_of_the_sender():
    base = 40

    message, _ = run_pod(pack_calls(lambda x: x + base, once(2)), options=("-I", "-S"))

    assert pickle.loads(message["value"]) == 42


def test_another_python_in_the_pod_is_said_and_not_tried_again():
    message, ran = run_pod(pack_calls(square, once(1), retries=3), python=[3, 7, 1])

    assert (message["reason"], message["attempt"], ran.returncode) == ("skew", 1, 1)
    here = ".".join(map(str, sys.version_info[:2]))
    assert f"sent by Python 3.7 and this pod has Python {here}" in message["message"]
    assert "choose an image with Python 3.7" in message["message"]


def test_another_cloudpickle_in_the_pod_is_said(tmp_path):
    (tmp_path / "cloudpickle.py").write_text("__version__ = '1.2'")

    message, _ = run_pod(pack_calls(square, once(1)), {"PYTHONPATH": str(tmp_path)}, options=())

    assert message["reason"] == "skew"
    assert "this pod has cloudpickle 1.2" in message["message"]
    assert "install cloudpickle==" in message["message"]


def test_a_module_that_the_pod_does_not_have_is_named(tmp_path, monkeypatch):
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "only_here_vcnb.py").write_text("def double(x):\n    return 2 * x\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site-packages"))
    import only_here_vcnb

    items = once(only_here_vcnb.double)
    message, _ = run_pod(pack_calls(square, items))
    packed = pack_calls(lambda f: f(4), items, modules=[only_here_vcnb])

    assert message["reason"] == "import"
    assert "no module 'only_here_vcnb'" in message["message"]
    assert pickle.loads(run_pod(packed)[0]["value"]) == 8


def test_a_traceback_in_the_pod_shows_the_source_lines():
    def fails():
        raise ValueError("told")  # this very line

    message, ran = run_pod(pack_calls(fails, once()))

    assert 'raise ValueError("told")  # this very line' in message["traceback"]
    assert "vcnb_program" not in message["traceback"]
    assert message["traceback"] in ran.stderr


def test_a_coroutine_function_is_run_to_its_end():
    async def later(x):
        return x + 1

    message, _ = run_pod(pack_calls(later, once(1)))

    assert pickle.loads(message["value"]) == 2


def test_what_is_returned_and_cannot_be_pickled_is_named():
    message, _ = run_pod(pack_calls(lambda: threading.Lock(), once(), retries=2))  # noqa: PLW0108

    assert (message["reason"], message["attempt"]) == ("unpicklable", 1)
    assert "it returned a lock, which cannot be pickled" in message["message"]


def test_a_result_above_the_limit_says_its_size_and_what_to_do():
    message, ran = run_pod(pack_calls(lambda: os.urandom(5000), once()), limit=3000)

    assert (message["reason"], ran.returncode) == ("too large", 1)
    assert "the limit is 3,000; write it to a volume" in message["message"]


def test_a_call_that_ends_its_process_is_tried_again_in_a_new_one(tmp_path):
    def falls_over_twice(folder):
        import os
        from pathlib import Path

        tries = Path(folder) / f"try-{len(list(Path(folder).iterdir()))}"
        tries.touch()
        if tries.name != "try-2":
            os._exit(9)
        return "done"

    message, ran = run_pod(pack_calls(falls_over_twice, once(str(tmp_path)), retries=2))

    assert (pickle.loads(message["value"]), message["attempt"], ran.returncode) == ("done", 3, 0)
    assert "attempt 1 of 3 failed, trying again" in ran.stderr


@pytest.mark.parametrize(
    ("code", "reason", "words"),
    [
        ("import os; os._exit(9)", "crashed", "exit code 9"),
        ("import os; os.kill(os.getpid(), 11)", "crashed", "SIGSEGV"),
        ("import sys; sys.exit(4)", "exit", "sys.exit(4)"),
        ("raise KeyboardInterrupt", "raised", ""),
    ],
)
def test_however_a_call_ends_its_end_is_told(code, reason, words):
    message, ran = run_pod(pack_calls(exec, once(code)))

    assert (message["state"], message["reason"], ran.returncode) == ("failed", reason, 1)
    assert words in message["message"]


def test_a_call_that_takes_too_long_is_ended():
    message, _ = run_pod(pack_calls(exec, once("import time; time.sleep(60)"), timeout=0.3))

    assert (message["reason"], message["message"]) == ("timeout", "it ran longer than 0.3 s")


def test_the_last_word_of_a_failed_pod_is_for_people(tmp_path):
    word = tmp_path / "word"

    _, ran = run_pod(pack_calls(exec, once("1/0")), {"VCNB_TERMINATION_LOG": str(word)})
    _, blind = run_pod(pack_calls(exec, once("1/0")), {"VCNB_TERMINATION_LOG": "/no/such/place"})

    assert word.read_text() == "ZeroDivisionError: division by zero"
    assert blind.stderr.splitlines()[-1] == "ZeroDivisionError: division by zero"
    assert ran.returncode == 1

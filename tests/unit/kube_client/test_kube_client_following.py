"""Taking up a broken stream of output: every line once, by the kubelet's stamps."""

from vcnb.client.kube.following import Resume


def stamped(second: int, fraction: str, text: str) -> str:
    return f"2026-12-01T10:00:{second:02d}.{fraction}Z {text}"


def test_lines_lose_their_stamps():
    assert Resume().take(stamped(1, "000000001", "a b")) == "a b"


def test_nothing_is_asked_for_again_before_anything_came():
    assert Resume().since is None


def test_a_stream_is_taken_up_from_the_second_of_the_last_line():
    resume = Resume()
    resume.take(stamped(7, "25", "a"))

    assert resume.since == "2026-12-01T10:00:07Z"


def test_a_zone_is_kept():
    resume = Resume()
    resume.take("2026-12-01T10:00:07.25+02:00 a")

    assert resume.since == "2026-12-01T10:00:07+02:00"


def test_what_came_before_is_told_by_its_stamp():
    resume = Resume()
    lines = [stamped(1, "1", "a"), stamped(1, "12", "b"), stamped(2, "000000001", "c")]
    for line in lines[:2]:
        resume.take(line)
    resume.again()

    assert [resume.take(line) for line in lines] == [None, None, "c"]


def test_several_lines_of_one_stamp_come_once_each():
    resume = Resume()
    lines = [stamped(1, "5", text) for text in "abcd"]
    first = [resume.take(line) for line in lines[:2]]
    resume.again()
    second = [resume.take(line) for line in lines]

    assert first == ["a", "b"]
    assert second == [None, None, "c", "d"]


def test_an_empty_line_is_a_line():
    assert Resume().take("2026-12-01T10:00:01.5Z ") == ""

"""Quantities: exact, compared by value, printed as Kubernetes prints them."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcnb.resources.quantity import (
    Quantity,
    QuantityError,
    add_resources,
    max_resources,
    resource_list,
    subtract_resources,
    sum_resources,
)


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("500m", "500m"),
        ("0.5", "500m"),
        ("3.5", "3500m"),
        ("3", "3"),
        ("+3", "3"),
        (".5", "500m"),
        ("1.", "1"),
        ("-1.5", "-1500m"),
        ("1000", "1k"),
        ("1500", "1500"),
        ("100000", "100k"),
        ("1000m", "1"),
        ("6144Mi", "6Gi"),
        ("1.5Gi", "1536Mi"),
        ("1023", "1023"),
        ("1024Ki", "1Mi"),
        ("512", "512"),
        ("0.5Ki", "512"),
        ("0.1Gi", "107374182400m"),
        ("-1Gi", "-1Gi"),
        ("1e3", "1e3"),
        ("1E3", "1e3"),
        ("12e6", "12e6"),
        ("100e3", "100e3"),
        ("1e-3", "1e-3"),
        ("1E", "1E"),
        ("2n", "2n"),
        ("0.1n", "1n"),
        ("0", "0"),
        ("0Gi", "0"),
        ("0e9", "0"),
        ("1u", "1u"),
        ("5T", "5T"),
        ("7P", "7P"),
    ],
)
def test_canonical_text(written, printed):
    assert str(Quantity.parse(written)) == printed


@pytest.mark.parametrize(
    "written", ["", "abc", "1Gib", "1 Gi", "1K", "1.2.3", "--1", "1e", "1e1.5", "m", "1mi", "٣", "1\n"]
)
def test_no_quantity(written):
    with pytest.raises(QuantityError, match="is no quantity"):
        Quantity.parse(written)


@pytest.mark.parametrize("value", [True, None, [1], float("nan"), float("inf"), "9" * 5000])
def test_values_that_are_no_quantity(value):
    with pytest.raises(QuantityError):
        Quantity.parse(value)


def test_numbers_are_quantities_too():
    assert Quantity.parse(2) == Quantity.parse("2")
    assert str(Quantity.parse(0.25)) == "250m"
    assert Quantity.parse(1e-5) == Quantity.parse("10u")
    assert Quantity.parse(Quantity.parse("1Gi")) == Quantity.parse("1024Mi")


def test_equal_by_value_whatever_the_format():
    same = {Quantity.parse(text) for text in ("1", "1000m", "1e0", "1.000")}
    assert len(same) == 1
    assert Quantity.parse("1") != 1


def test_order():
    assert Quantity.parse("999m") < Quantity.parse("1") <= Quantity.parse("1000m") < Quantity.parse("1Ki")
    assert max(map(Quantity.parse, ("1Gi", "1G", "1023Mi"))) == Quantity.parse("1Gi")


def test_sum_is_printed_like_the_left_side():
    assert str(Quantity.parse("1Gi") + Quantity.parse("1024Mi")) == "2Gi"
    assert str(Quantity.parse("1") + Quantity.parse("500m")) == "1500m"
    assert str(Quantity.parse("0") + Quantity.parse("1Gi")) == "1Gi"
    assert str(Quantity.parse("1Gi") - Quantity.parse("1Gi")) == "0"
    assert str(Quantity.parse("250m") * 4) == "1"
    assert str(-Quantity.parse("2")) == "-2"


def test_whole_numbers():
    assert Quantity.parse("2").is_integer
    assert Quantity.parse("1e3").is_integer
    assert not Quantity.parse("1500m").is_integer
    assert Quantity.parse("1500m").ceil() == 2
    assert Quantity.parse("-1500m").ceil() == -2
    assert Quantity.parse("1.0001").millis == 1001
    assert Quantity.parse("1500m").value == Fraction(3, 2)
    assert float(Quantity.parse("1500m")) == 1.5


def test_too_large_is_cut_to_the_largest():
    assert str(Quantity.parse("10E")) == str(2**63 - 1)
    assert Quantity.parse("1e999") == Quantity.parse("9223372036854775807")


@given(st.integers(-(2**62) * 10**9, 2**62 * 10**9), st.sampled_from(["DecimalSI", "BinarySI", "DecimalExponent"]))
def test_text_reads_back_as_the_same_amount(nanos, form):
    amount = Quantity(nanos, form)
    again = Quantity.parse(str(amount))
    assert again == amount
    if form != "BinarySI":  # a binary amount that 1024 does not divide is written without a suffix, and read as decimal
        assert str(again) == str(amount)


@given(st.decimals(-(10**9), 10**9, places=6), st.sampled_from(["", "k", "M", "Ki", "Mi", "m"]))
def test_parsing_is_exact(number, suffix):
    factor = {"": 1, "k": 1000, "M": 10**6, "Ki": 1024, "Mi": 1024**2, "m": Fraction(1, 1000)}[suffix]
    exact = Fraction(number) * factor
    assert Quantity.parse(f"{number:f}{suffix}").value == exact


def test_resource_lists():
    left = resource_list({"cpu": "500m", "memory": "1Gi"})
    right = resource_list({"cpu": 1, "pods": 2})
    assert add_resources(left, right) == resource_list({"cpu": "1500m", "memory": "1Gi", "pods": 2})
    assert subtract_resources(left, right) == resource_list({"cpu": "-500m", "memory": "1Gi", "pods": -2})
    assert max_resources(left, right) == resource_list({"cpu": 1, "memory": "1Gi", "pods": 2})
    assert sum_resources([left, left, right])["cpu"] == Quantity.parse(2)
    assert resource_list(None) == {}

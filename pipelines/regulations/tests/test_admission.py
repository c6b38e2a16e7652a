"""Which URLs a source takes: hosts, private addresses, lengths, patterns."""

from __future__ import annotations

import re

import pytest

from holdfast_regulations.admission import Admission, Refusal


@pytest.mark.parametrize(
    ("url", "refusal"),
    [
        ("https://a.hr/x", None),
        ("http://a.hr/x", None),
        ("HTTPS://A.HR/x", None),
        ("https://a.hr:443/x", None),
        ("https://b.hr:8080/x", None),
        ("https://a.hr", None),
        ("", Refusal.MISSING),
        ("/x", Refusal.NOT_HTTP),
        ("file:///etc/passwd", Refusal.NOT_HTTP),
        ("javascript:alert(1)", Refusal.NOT_HTTP),
        ("ftp://a.hr/x", Refusal.NOT_HTTP),
        ("https://[::1", Refusal.NOT_HTTP),
        ("https://a.hr/" + "x" * 2048, Refusal.TOO_LONG),
        ("https://www.a.hr/x", Refusal.OFF_HOST),
        ("https://a.hr.evil.example/x", Refusal.OFF_HOST),
        ("https://a.hr@evil.example/x", Refusal.OFF_HOST),
        ("https://8.8.8.8/x", Refusal.OFF_HOST),
        ("https://a.hr:8443/x", Refusal.OFF_HOST),
        ("http://a.hr:443/x", Refusal.OFF_HOST),
        ("https://a.hr:x/x", Refusal.NOT_HTTP),
        ("http://127.0.0.1/x", Refusal.PRIVATE_ADDRESS),
        ("http://10.0.0.7:8000/x", Refusal.PRIVATE_ADDRESS),
        ("http://169.254.169.254/latest/meta-data", Refusal.PRIVATE_ADDRESS),
        ("http://[::1]/x", Refusal.PRIVATE_ADDRESS),
        ("http://[::ffff:10.0.0.1]/x", Refusal.PRIVATE_ADDRESS),
        ("http://localhost/x", Refusal.PRIVATE_ADDRESS),
    ],
)
def test_place_of_a_url_decides(url: str, refusal: Refusal | None) -> None:
    assert Admission(["a.hr", "b.hr:8080"]).refusal(url) is refusal


def test_patterns_decide_after_the_place() -> None:
    admission = Admission(["a.hr"], [re.compile("/clanci/")], [re.compile("/oglasi/")])
    assert admission.refusal("https://a.hr/clanci/1") is None
    assert admission.refusal("https://a.hr/vijesti/1") is Refusal.NOT_INCLUDED
    assert admission.refusal("https://a.hr/clanci/oglasi/1") is Refusal.EXCLUDED
    assert admission.refusal_of_place("https://a.hr/vijesti/1") is None


def test_refusals_are_counted_with_a_few_examples() -> None:
    admission = Admission(["a.hr"])
    assert admission.admits("https://a.hr/1")
    for number in range(20):
        assert not admission.admits(f"https://b.hr/{number}")
    assert admission.counts == {Refusal.OFF_HOST: 20}
    assert admission.examples[Refusal.OFF_HOST] == [f"https://b.hr/{n}" for n in range(5)]

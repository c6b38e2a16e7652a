"""The canonical key: TEST-1 and TEST-2 of docs/invariants.md, identities of acts, overrides."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast_regulations.canonical import (
    DEFAULT_RULES,
    CanonicalRules,
    Identity,
    InvalidUrl,
    backfill_id,
    canonical_key,
    canonical_url,
    identity_of,
)
from holdfast_regulations.sources_file import shipped_sources

GAZETTE = shipped_sources()["narodne-novine"].canonical_rules
LEGACY = "https://narodne-novine.nn.hr/clanci/sluzbeni/2024_03_25_412.html"
ELI = "https://narodne-novine.nn.hr/eli/sluzbeni/2024/25/412"


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("https://example.com/page?b=2&a=1", "https://example.com/page?a=1&b=2"),
        ("https://example.com/page#section", "https://example.com/page"),
        ("https://example.com/page/", "https://example.com/page"),
    ],
)
def test_1_same_url_has_one_canonical_form(left: str, right: str) -> None:
    assert canonical_key(left) == canonical_key(right)


def test_2_same_inputs_have_one_id() -> None:
    url = "https://narodne-novine.nn.hr/123"
    first = backfill_id("narodne-novine", url)
    assert first == backfill_id("narodne-novine", url)
    assert re.fullmatch(r"backfill-narodne-novine-[0-9a-f]{32}", first)
    # Written down, so that an upgrade that changed every id would not go unnoticed.
    assert first == "backfill-narodne-novine-cf70d16c0c965a1e75be482d766fcb97"


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        ("HTTPS://Example.COM:443/a/../b", "https://example.com/b"),
        ("https://example.com", "https://example.com/"),
        ("https://example.com/%7euser/%c5%a1", "https://example.com/~user/%C5%A1"),
        ("https://example.com/š", "https://example.com/%C5%A1"),
        ("https://šuma.hr/a", "https://xn--uma-zza.hr/a"),
        ("https://example.com:8443/a", "https://example.com:8443/a"),
        ("https://example.com/a?x=2&x=1&a=3", "https://example.com/a?a=3&x=2&x=1"),
        ("https://example.com/a?utm_source=n&id=1&fbclid=z", "https://example.com/a?id=1"),
        (
            "https://example.com/a?source=1&ref=2&sid=3",
            "https://example.com/a?ref=2&sid=3&source=1",
        ),
        ("https://example.com/vijesti/8?Page=2", "https://example.com/vijesti/8?Page=2"),
    ],
)
def test_url_is_folded(url: str, canonical: str) -> None:
    assert canonical_url(url) == canonical


def test_case_of_paths_and_parameters_is_kept() -> None:
    assert canonical_key("https://a.hr/A?Page=1") != canonical_key("https://a.hr/a?Page=1")
    assert canonical_key("https://a.hr/a?Page=1") != canonical_key("https://a.hr/a?page=1")


@pytest.mark.parametrize("url", ["", "page.html", "//example.com/a", "https://", "http://[::1"])
def test_url_that_is_not_absolute_is_refused(url: str) -> None:
    with pytest.raises(InvalidUrl):
        canonical_url(url)


def test_source_overrides_what_is_folded() -> None:
    slash = replace(DEFAULT_RULES, keep_trailing_slash=True)
    assert canonical_url("https://a.hr/x/", slash) == "https://a.hr/x/"
    folded = CanonicalRules(fold_www=True, fold_scheme=True, drop_parameters=("ref",))
    assert canonical_url("http://www.a.hr/x?ref=1&utm_source=2", folded) == (
        "https://a.hr/x?utm_source=2"
    )
    fragment = replace(DEFAULT_RULES, keep_fragment=True)
    assert canonical_url("https://a.hr/x#clanak-3", fragment) == "https://a.hr/x#clanak-3"


@pytest.mark.parametrize(
    "url",
    [
        LEGACY,
        ELI,
        ELI + "/",
        ELI + "/hrv/printhtml",
        LEGACY.replace("/sluzbeni/", "/sluzbeni/full/"),
        LEGACY + "?utm_source=x",
    ],
)
def test_all_urls_of_an_act_are_one_item(url: str) -> None:
    assert identity_of(url, GAZETTE.identity) == Identity("sluzbeni", 2024, 25, "412")
    assert backfill_id("narodne-novine", url, GAZETTE) == backfill_id(
        "narodne-novine", ELI, GAZETTE
    )


def test_other_acts_and_other_parts_are_other_items() -> None:
    others = [
        ELI.replace("/412", "/413"),
        ELI.replace("/25/", "/26/"),
        ELI.replace("/2024/", "/2023/"),
        ELI.replace("sluzbeni", "medunarodni"),
        ELI + "0",
    ]
    assert len({canonical_key(url, GAZETTE) for url in [ELI, *others]}) == 6


def test_identity_gives_the_path_of_the_eli() -> None:
    identity = identity_of(LEGACY, GAZETTE.identity)
    assert identity is not None
    assert ELI.endswith(identity.eli)


_PATHS = st.text("abcXYZ019_~./-", max_size=20)


@given(
    st.sampled_from(["https", "http"]),
    st.sampled_from(["a.hr", "www.b-c.gov.hr", "1.x.hr"]),
    _PATHS,
)
def test_short_cut_for_plain_urls_changes_nothing(scheme: str, host: str, path: str) -> None:
    plain = f"{scheme}://{host}/{path}"
    # An empty query keeps it from the short cut and means nothing.
    assert canonical_url(plain) == canonical_url(plain + "?")


@given(_PATHS, st.lists(st.tuples(st.sampled_from("abc"), st.text("xyz%", max_size=3)), max_size=4))
def test_canonical_form_is_its_own_canonical_form(path: str, query: list[tuple[str, str]]) -> None:
    url = f"https://a.hr/{path}?" + "&".join(f"{name}={value}" for name, value in query)
    assert canonical_url(canonical_url(url)) == canonical_url(url)

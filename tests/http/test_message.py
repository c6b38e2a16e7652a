"""A request's host, label and redirects, without a network."""

from __future__ import annotations

import pytest

from holdfast.errors import ItemError
from holdfast.http.message import check_hop, compose, redirected, same_origin


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://Shop.Example/", "shop.example"),
        ("https://shop.example:443/", "shop.example"),
        ("http://shop.example:80/", "shop.example"),
        ("https://shop.example:80/", "shop.example:80"),
        ("https://shop.example./", "shop.example"),
        ("http://bücher.example/", "xn--bcher-kva.example"),
        ("http://[2606:4700::ABCD]:8080/", "[2606:4700::abcd]:8080"),
    ],
)
def test_the_gate_is_named_by_host_and_unusual_port(url: str, host: str) -> None:
    assert compose("GET", url).host == host


def test_the_label_hides_the_query() -> None:
    message = compose("get", "https://shop.example/a", params={"api_key": "secret"})
    assert message.label == "GET https://shop.example/a?…"


def test_parameters_are_added_to_those_of_the_url() -> None:
    message = compose("GET", "https://a.example/?x=1", params={"y": ["a", "b"], "z": None})
    assert str(message.url) == "https://a.example/?x=1&y=a&y=b"


def test_only_one_kind_of_body_can_be_given() -> None:
    with pytest.raises(TypeError, match="only one"):
        compose("POST", "https://a.example/", json=1, content=b"x")


def test_a_redirect_from_https_to_http_is_refused() -> None:
    message = compose("GET", "https://a.example/x")
    following = redirected(message, 301, "http://a.example/x")
    assert following is not None
    with pytest.raises(ItemError, match=r"INVALID_RESPONSE.*https to http"):
        check_hop(message, following, [str(message.url)], off_host=True)


def test_a_redirect_from_http_to_https_stays_on_the_host_but_loses_secrets() -> None:
    message = compose("GET", "http://a.example/x", headers={"Authorization": "s"})
    following = redirected(message, 308, "https://a.example/x")
    assert following is not None
    check_hop(message, following, [str(message.url)], off_host=False)
    assert not same_origin(message.url, following.url)
    assert following.headers == {}


@pytest.mark.parametrize(("status", "location"), [(200, "/y"), (304, "/y"), (302, None), (302, "")])
def test_without_status_and_location_there_is_no_redirect(
    status: int, location: str | None
) -> None:
    assert redirected(compose("GET", "https://a.example/x"), status, location) is None

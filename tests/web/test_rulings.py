"""The decision on a row's page."""

from __future__ import annotations

from markupsafe import escape

from holdfast.model import ItemStatus
from tests.web.site import Site
from tests.web.test_ownership import Visitor


def test_decision_is_made_and_revoked_on_the_page_of_a_row(site: Site) -> None:
    ada = Visitor(site, "operator")
    job_id = site.job(ada.name, ["oak", "pine"], [ItemStatus.DONE])
    page = f"/jobs/{job_id}/items/2"
    decision = {"kind": "edit", "value": '{"length": 99}', "reason": "measured"}
    assert "No decision" in ada.client.get(page).text
    assert ada.post(f"{page}/ruling", version="0", **decision).status_code == 303
    shown = ada.client.get(page).text
    assert "measured" in shown and "&#34;length&#34;: 99" in shown
    other = decision | {"value": '{"length": 98}'}
    late = ada.post(f"{page}/ruling", version="0", **other)
    assert late.status_code == 409 and "has decided about row 2 since" in late.text
    assert "&#34;length&#34;: 98" in late.text, "what was typed is kept"
    assert "&#34;length&#34;: 99" in late.text and "decide again" in late.text
    assert 'name="version" value="1"' in late.text, "the next decision knows this one"
    rows = ada.client.get(f"/jobs/{job_id}?q=ruling:edit").text
    assert 'data-seq="2"' in rows and 'data-seq="1"' not in rows
    assert ada.post(f"{page}/ruling", version="1", kind="revoke").status_code == 303
    assert "No decision" in ada.client.get(page).text
    ada.client.close()


def test_invalid_decision_is_refused(site: Site) -> None:
    ada = Visitor(site, "operator")
    job_id = site.job(ada.name, ["oak"], [ItemStatus.DONE])
    for kind, value in (("edit", "{length: 99}"), ("praise", "{}"), ("edit", '{"colour": 1}')):
        reply = ada.post(f"/jobs/{job_id}/items/1/ruling", version="0", kind=kind, value=value)
        assert reply.status_code == 422
        assert 'role="alert"' in reply.text and str(escape(value)) in reply.text
    ada.client.close()


def test_bulk_operation_refuses_a_filter_by_ruling(site: Site) -> None:
    ada = Visitor(site, "operator")
    job_id = site.job(ada.name, ["oak"], [ItemStatus.DONE])
    reply = ada.post(f"/jobs/{job_id}/bulk", kind="reprocess", q="ruling:edit", all="1")
    assert reply.status_code == 422 and "do not filter by ruling" in reply.text
    ada.client.close()

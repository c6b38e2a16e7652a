"""People who look at a site, each with a role and a session of their own."""

from __future__ import annotations

import httpx2

from tests.signing_in import sign_in
from tests.web.site import Site


class Visitors:
    def __init__(self, site: Site) -> None:
        self.site = site
        self._clients: dict[str, httpx2.Client] = {}

    def of(self, name: str, role: str) -> httpx2.Client:
        if name not in self._clients:
            self.site.add_user(name, role)
            client = httpx2.Client(base_url=self.site.url, timeout=30, follow_redirects=True)
            sign_in(client, self.site.login_link(name))
            self._clients[name] = client
        return self._clients[name]

    @property
    def admin(self) -> httpx2.Client:
        return self.of("root", "admin")

    def close(self) -> None:
        for client in self._clients.values():
            client.close()

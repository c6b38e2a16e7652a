"""`python -m bench.regulations.bare PORT`: downloads and lxml.iterparse, and nothing else."""

from __future__ import annotations

import http.client
import io
import sys

from lxml import etree

_LOC = "{http://www.sitemaps.org/schemas/sitemap/0.9}loc"


def locations(connection: http.client.HTTPConnection, path: str) -> list[str]:
    connection.request("GET", path)
    body = connection.getresponse().read()
    found = []
    for _, element in etree.iterparse(io.BytesIO(body), tag=_LOC):
        found.append(element.text)
        element.clear()
    return found


def main(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    count = 0
    for url in locations(connection, "/sitemap.xml"):
        count += len(locations(connection, "/" + url.split("/", 3)[3]))
    print(count)


if __name__ == "__main__":
    main(int(sys.argv[1]))

"""Regulations: finds every URL of a source, fetches politely, keeps what was seen as evidence.

`sources_file` reads what a source is; `sitemap`, `archive` and `pagination` find its URLs;
`admission` and `dates` decide which are wanted; `canonical` names them; `content` and `extract`
read what was fetched; `warc` exports it.
"""

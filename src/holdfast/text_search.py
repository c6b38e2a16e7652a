"""Full-text search for an extension: FTS5 on SQLite, a `tsvector` with a GIN index on PostgreSQL.

A search table has the words of an extension's texts, and a queue the batches whose words it does
not have yet. Rows are queued in the transaction that writes their texts, and indexed by the
pipeline's `tend`: a text can be read before it can be found. The extension has the tables in its
schema, where TABLE is the search table:

    schema/sqlite.sql                                  schema/postgres.sql
    create virtual table TABLE using fts5 (            create table TABLE (
        words, tokenize = 'porter unicode61'               rowid bigint primary key,
    );                                                     words tsvector not null
    create table TABLE_queue (                         );
        id    @id,                                     create index TABLE_by_words
        batch text not null                            on TABLE using gin (words);
    );                                                 create table TABLE_queue (
                                                           id    @id,
                                                           batch json not null
                                                       );

And it names these queries:

TABLE_enqueue   add :batch, a JSON object, to TABLE_queue
TABLE_next      id and batch of the first one, `@skip_locked`
TABLE_dequeue   delete the one with :id
TABLE_ids       the ids of the rows that a batch is about; its members are the parameters
TABLE_remove    delete the rows with :ids from the search table
TABLE_add       insert them: `@words(text)`, `@replaced_words`

and its search, with `@has_words`, `@snippet` and `@highlight` (kernel/database/queries.py).
Words to search for always go through `search_query`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import orjson

from holdfast.model import Json
from holdfast.pipeline import Tx

_WORDS = re.compile(r'"[^"]*"|[^\s"]+')
#: How much of a text can be searched. Each place in it is compared with each form.
_SEARCHED_CHARACTERS = 100_000
_MOST_FORMS = 50
#: What the database puts around a match. No text that people read has these characters.
_MARKED = re.compile("\x02([^\x02\x03]*)\x03")

#: A stretch of a text, and whether it matches the search.
Part = tuple[str, bool]


@dataclass(frozen=True, slots=True)
class TextIndex:
    table: str

    async def enqueue(self, tx: Tx, batch: Json) -> None:
        """Queues a batch, to be indexed as its rows are then; also removed rows, so that they are
        no longer found."""
        await tx.take(f"{self.table}_enqueue", {"batch": orjson.dumps(batch).decode()})

    async def index_some(self, tx: Tx) -> bool:
        """Indexes one batch; returns False when all are indexed."""
        rows = await tx.fetch(f"{self.table}_next")
        if not rows:
            return False
        row_id, batch = rows[0]
        params: dict[str, Any] = orjson.loads(batch)
        ids = sorted(row[0] for row in await tx.fetch(f"{self.table}_ids", params))
        await tx.take(f"{self.table}_remove", {"ids": ids})
        await tx.take(f"{self.table}_add", {"ids": ids})
        await tx.take(f"{self.table}_dequeue", {"id": row_id})
        return True


def search_query(words: str) -> str:
    """Returns the words, each in quotes, as both databases accept them; empty if there are none.

    Words within quotes are a phrase."""
    parts = (part.replace('"', "").replace("\0", "").strip() for part in _WORDS.findall(words))
    return " ".join(f'"{part}"' for part in parts if any(map(str.isalnum, part)))


def snippet_parts(marked: str) -> list[Part]:
    """Splits what `@snippet` returned."""
    parts = _MARKED.split(marked)
    return [(part, bool(at % 2)) for at, part in enumerate(parts) if part]


def highlighted_parts(text: str, marked: str) -> list[Part]:
    """Splits the text at every place of a word that `@highlight` marked.

    The database says which words match, stems and all; its own copy of the text would not do, as
    PostgreSQL leaves out what looks like a tag."""
    forms = {form for form in _MARKED.findall(marked) if form.strip()}
    if not forms:
        return [(text, False)]
    longest_first = sorted(forms, key=len, reverse=True)[:_MOST_FORMS]
    pattern = rf"\b({'|'.join(map(re.escape, longest_first))})\b"
    parts = re.split(pattern, text[:_SEARCHED_CHARACTERS])
    marked_parts = [(part, bool(at % 2)) for at, part in enumerate(parts) if part]
    rest = text[_SEARCHED_CHARACTERS:]
    return [*marked_parts, (rest, False)] if rest else marked_parts

"""`python -m bench.meetings.bulk_create URL DSN`: Django's ORM, a bulk upsert for each page.

Missing documents are created, pages inserted or updated on conflict, one transaction for each API
page: how a Django application stores such rows, at its best.
"""

from __future__ import annotations

import sys
from datetime import date
from typing import Any
from urllib.parse import urlsplit

import django
from django.conf import settings

from bench.meetings.download import pages


def configure(dsn: str) -> None:
    parts = urlsplit(dsn)
    settings.configure(
        DATABASES={
            "default": {
                "ENGINE": "django.db.backends.postgresql",
                "NAME": parts.path.lstrip("/"),
                "USER": parts.username,
                "HOST": parts.hostname,
                "PORT": parts.port,
            }
        },
        USE_TZ=True,
    )
    django.setup()


def main(url: str, dsn: str) -> int:
    configure(dsn)
    from django.db import connection, models, transaction

    class Document(models.Model):
        municipality = models.IntegerField()
        meeting_name = models.CharField(max_length=255)
        meeting_date = models.DateField()
        document_type = models.CharField(max_length=20)

        class Meta:
            app_label = "meetings"
            unique_together = (("municipality", "meeting_name", "meeting_date", "document_type"),)

    class Page(models.Model):
        id = models.CharField(primary_key=True, max_length=64)
        document = models.ForeignKey(Document, on_delete=models.CASCADE)
        page_number = models.IntegerField()
        text = models.TextField()
        page_image = models.CharField(max_length=500)
        created = models.DateTimeField(auto_now_add=True)
        updated = models.DateTimeField(auto_now=True)

        class Meta:
            app_label = "meetings"
            unique_together = (("document", "page_number"),)

    with connection.schema_editor() as editor:
        editor.create_model(Document)
        editor.create_model(Page)

    def documents_of(rows: list[dict[str, Any]]) -> dict[tuple[str, str], Any]:
        wanted = {(row["meeting"], row["date"]) for row in rows}
        new = [
            Document(
                municipality=1,
                meeting_name=meeting,
                meeting_date=date.fromisoformat(day),
                document_type="minutes",
            )
            for meeting, day in sorted(wanted)
        ]
        Document.objects.bulk_create(new, ignore_conflicts=True)
        days = {date.fromisoformat(day) for _, day in wanted}
        found = Document.objects.filter(municipality=1, meeting_date__in=days)
        return {(one.meeting_name, one.meeting_date.isoformat()): one for one in found}

    count = 0
    for rows in pages(url):
        with transaction.atomic():
            documents = documents_of(rows)
            Page.objects.bulk_create(
                [
                    Page(
                        id=row["id"],
                        document=documents[row["meeting"], row["date"]],
                        page_number=row["page"],
                        text=row["text"],
                        page_image=row["page_image"],
                    )
                    for row in rows
                ],
                update_conflicts=True,
                unique_fields=["id"],
                update_fields=["document", "page_number", "text", "page_image", "updated"],
            )
        count += len(rows)
    return count


if __name__ == "__main__":
    print(main(sys.argv[1], sys.argv[2]))

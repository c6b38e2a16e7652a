"""Small real documents of every class."""

from __future__ import annotations

import io
import zipfile

import xlsxwriter
from pypdf import PdfWriter


def pdf(*pages: str) -> bytes:
    """A PDF with a line of text on each page."""
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    kids: list[int] = []
    for text in pages:
        content = f"BT /F1 12 Tf 50 700 Td ({text}) Tj ET".encode("latin-1")
        objects.append(_stream(content))
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R "
            b"/Resources << /Font << /F1 3 0 R >> >> >>" % len(objects)
        )
        kids.append(len(objects))
    shown = " ".join(f"{kid} 0 R" for kid in kids)
    objects[1] = f"<< /Type /Pages /Kids [{shown}] /Count {len(kids)} >>".encode()
    return _assembled(objects)


def halved_pdf() -> bytes:
    """Its font says that Z is the first half of a character, and X and Y together are another."""
    halves = b"3 beginbfchar <5A> <D835> <58> <D835> <59> <DC00> endbfchar"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [5 0 R] /Count 1 >>",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 6 0 R >>",
        _stream(b"BT /F1 12 Tf 50 700 Td (Zakon o porezu na XY, u cijelosti) Tj ET"),
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
        b"/Resources << /Font << /F1 3 0 R >> >> >>",
        _stream(b"1 begincodespacerange <00> <ff> endcodespacerange\n" + halves),
    ]
    return _assembled(objects)


def _stream(content: bytes) -> bytes:
    return b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content)


def _assembled(objects: list[bytes]) -> bytes:
    out = bytearray(b"%PDF-1.4\n")
    places = []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, start)
    return bytes(out)


def scanned_pdf(pages: int = 2) -> bytes:
    writer = PdfWriter()
    for _ in range(pages):
        writer.add_blank_page(595, 842)
    target = io.BytesIO()
    writer.write(target)
    return target.getvalue()


def xlsx() -> bytes:
    target = io.BytesIO()
    with xlsxwriter.Workbook(target) as book:
        book.add_worksheet().write(0, 0, "porez")
    return target.getvalue()


def docx() -> bytes:
    return zipped({"[Content_Types].xml": "<Types/>", "word/document.xml": "<w/>"})


def zipped(files: dict[str, str]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return target.getvalue()


ACT_TEXT = (
    "Na temelju članka 89. Ustava Republike Hrvatske donosim odluku o proglašenju zakona. "
    "Ovim se Zakonom uređuje obveza fiskalizacije u prometu gotovinom, način provedbe postupka "
    "i nadzor nad provedbom odredbi ovoga Zakona."
)


def act_page(title: str = "Zakon o fiskalizaciji", text: str = ACT_TEXT, noise: str = "") -> bytes:
    paragraphs = "".join(f"<p>Članak {n}. {text}</p>" for n in range(1, 4))
    return f"""<!DOCTYPE html><html lang="hr"><head><meta charset="utf-8">
    <title>{title} - Narodne novine</title>
    <meta property="eli:date_publication" content="2024-03-05"></head>
    <body><nav><a href="/">Naslovnica</a> Izbornik</nav>{noise}
    <main><h1>{title}</h1>{paragraphs}</main><footer>Sva prava pridržana</footer></body></html>
    """.encode()

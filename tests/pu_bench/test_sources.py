"""Fetching: OpenML's protocol and zip archives from a local server, checked, kept, refused."""

import hashlib
import http.server
import io
import json
import threading
import time
import urllib.request
import zipfile

import pytest
from sklearn.datasets import _openml

from pu_bench.data import TASKS, load_collection
from pu_bench.data.canonical import canonical_table
from pu_bench.data.sources import Archive, OpenML
from pu_bench.data.tasks import PINS, TaskSpec

COLUMNS = ["size", "colour", "target"]
ROWS = [[f"{number}.5", ("red", "blue")[number % 2], "yn"[number < 7]] for number in range(12)]
ARFF = """% a comment
@relation toy
@attribute Size numeric
@attribute 'The Colour' {{blue,red}}
@attribute Id numeric
@attribute Class {{present,absent}}
@data
{rows}
"""


# Begins a whole answer, head included.
RAW = b"raw:"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"


@pytest.fixture
def server():
    """Serves `content` by path, and lists the paths asked for in `asked`."""

    class Handler(http.server.BaseHTTPRequestHandler):
        content: dict[str, bytes] = {}  # noqa: RUF012
        asked: list[str] = []  # noqa: RUF012

        def do_GET(self):
            self.asked.append(self.path)
            body = self.content.get(self.path)
            if body and body.startswith(RAW):
                self.wfile.write(body.removeprefix(RAW))
                return
            self.send_response(404 if body is None else 200)
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_):
            pass

    Handler.content, Handler.asked = {}, []
    running = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    Handler.url = f"http://127.0.0.1:{running.server_port}"
    yield Handler
    running.shutdown()
    running.server_close()


@pytest.fixture
def toy(monkeypatch):
    """Register a task of the toy table with some sources."""

    def register(*sources, **options):
        digest = canonical_table(COLUMNS, ROWS).digest()
        monkeypatch.setitem(PINS, "toy", {"columns": COLUMNS, "rows": 12, "sha256": digest})
        spec = TaskSpec("toy", "Toy", sources, lambda t: t == "y", "nowhere", **options)
        monkeypatch.setitem(TASKS, "toy", spec)

    return register


def zipped(**members: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return out.getvalue()


def corrupt(text: str) -> bytes:
    """An archive of a compressed member `t` whose first bytes are no compressed ones."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("t", text)
        start = archive.infolist()[0].header_offset + 30 + len("t")
    content = bytearray(out.getvalue())
    content[start : start + 4] = b"\xff" * 4
    return bytes(content)


def csv_of(rows, delimiter=",") -> str:
    return "\n".join(delimiter.join(row) for row in rows) + "\n"


def serve_openml(server, monkeypatch, rows):
    """OpenML's answers for data set 7, and scikit-learn sent to them."""
    facts = {"id": "7", "name": "toy", "version": "1", "status": "active", "format": "ARFF"}
    facts |= {"default_target_attribute": "Class", "description": "a toy"}
    facts |= {"url": f"{server.url}/data/v1/download/70/toy.arff", "licence": "x"}
    kinds = {"Size": "numeric", "The Colour": "nominal", "Id": "numeric", "Class": "nominal"}
    features = [
        {"index": str(place), "name": name, "data_type": kind, "is_ignore": "false"}
        | {"is_target": str(name == "Class").lower(), "is_row_identifier": "false"}
        | {"number_of_missing_values": "0"}
        for place, (name, kind) in enumerate(kinds.items())
    ]
    classes = {"n": "present", "y": "absent"}
    lines = [f"{a},{b},{place},{classes[c]}" for place, (a, b, c) in enumerate(rows)]
    content = ARFF.format(rows="\n".join(lines)).encode()
    facts["md5_checksum"] = hashlib.md5(content).hexdigest()
    server.content |= {
        "/api/v1/json/data/7": json.dumps({"data_set_description": facts}).encode(),
        "/api/v1/json/data/features/7": json.dumps(
            {"data_features": {"feature": features}}
        ).encode(),
        "/api/v1/json/data/qualities/7": json.dumps({"data_qualities": {"quality": []}}).encode(),
        "/data/v1/download/70/toy.arff": content,
    }

    def open_here(request, *arguments, **options):
        path = request.full_url.split("/", 3)[3]
        return urllib.request.urlopen(f"{server.url}/{path}", *arguments, **options)

    monkeypatch.setattr(_openml, "urlopen", open_here)


def test_a_table_from_openml_is_verified_and_kept_for_the_next_time(
    server, toy, monkeypatch, own_cache
):
    # Rows in another order, other column names, other class names, a column of row numbers.
    serve_openml(server, monkeypatch, ROWS[::-1])
    toy(OpenML(7), target_codes={"present": "n", "absent": "y"})
    collection = load_collection(None, ["toy"])
    assert not collection.unavailable
    table = collection.tables["toy"]
    assert table.columns == ("size", "colour")
    assert (table.positive.sum(), len(table.x)) == (7, 12)  # the larger class
    assert (own_cache / "bench" / "toy.csv.gz").is_file()
    asked = len(server.asked)
    assert asked >= 3
    again = load_collection(None, ["toy"]).tables["toy"]
    assert len(server.asked) == asked
    assert again.digest == table.digest
    assert (again.x == table.x).all()


def test_a_table_that_changed_at_its_source_is_refused_by_its_checksum(
    server, toy, monkeypatch, own_cache
):
    serve_openml(server, monkeypatch, [*ROWS[:-1], ["99", "red", "n"]])
    toy(OpenML(7), target_codes={"present": "n", "absent": "y"})
    collection = load_collection(None, ["toy"])
    assert not collection.tables
    assert "openml.org/d/7 is not the pinned table" in collection.unavailable["toy"]
    assert not own_cache.exists()


def test_zip_archives_with_and_without_header_and_as_arff(server, toy):
    header = [["Size", "Colour", "Class"]]
    server.content |= {
        "/plain.zip": zipped(**{"a.data": csv_of(ROWS[:5], ", "), "b.data": csv_of(ROWS[5:])}),
        "/header.zip": zipped(**{"folder/The_T.csv": "\ufeff" + csv_of(header + ROWS, ";")}),
        "/arff.zip": zipped(**{"t.arff": "@RELATION t\n% x\n@DATA\n% y\n" + csv_of(ROWS)}),
    }
    for source in (
        Archive(f"{server.url}/plain.zip", ("a.data", "b.data")),
        Archive(f"{server.url}/header.zip", ("the t.csv",), delimiter=";", header=True),
        Archive(f"{server.url}/arff.zip", ("t.arff",), arff=True),
    ):
        assert canonical_table(COLUMNS, source.rows(COLUMNS)).digest() == (
            canonical_table(COLUMNS, ROWS).digest()
        )


def test_the_next_source_is_asked_where_the_first_fails(server, toy):
    server.content["/good.zip"] = zipped(t=csv_of(ROWS))
    toy(Archive(f"{server.url}/gone.zip", ("t",)), Archive(f"{server.url}/good.zip", ("t",)))
    assert "toy" in load_collection(None, ["toy"]).tables


@pytest.mark.parametrize(
    ("path", "content", "mentioned"),
    [
        ("/gone.zip", None, "404"),
        ("/bad.zip", b"no zip", "BadZipFile"),
        ("/empty.zip", zipped(other="x"), "no item named"),
        ("/corrupt.zip", corrupt(csv_of(ROWS)), "error: Error -3 while decompressing"),
        ("/returns.zip", zipped(t="1,red,y\r2,red,n\r"), "new-line character"),
        ("/cut.zip", RAW + CHUNKED + b"\r\n64\r\nabc", "IncompleteRead"),
        ("/garbage.zip", RAW + b"nonsense\r\n", "BadStatusLine"),
        ("/ragged.zip", zipped(t=csv_of([*ROWS, ["1"]])), "row 12 has 1 cells"),
        ("/short.zip", zipped(t=csv_of(ROWS[:-1])), "11 rows, 12 expected"),
    ],
    # Not the archives' bytes, which hold the time of day: processes that test side by side must
    # find the same tests.
    ids=lambda value: "archive" if isinstance(value, bytes) else None,
)
def test_what_cannot_be_had_is_named_with_its_reason(server, toy, path, content, mentioned):
    if content is not None:
        server.content[path] = content
    toy(Archive(f"{server.url}{path}", ("t",)))
    reason = load_collection(None, ["toy"]).unavailable["toy"]
    assert path in reason
    assert mentioned in reason


def test_a_small_archive_of_a_huge_member_is_not_unpacked(server, toy, monkeypatch):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("t", "0" * 100_000)
    server.content["/t.zip"] = out.getvalue()
    monkeypatch.setattr("pu_bench.data.sources._LARGEST", 10_000)
    toy(Archive(f"{server.url}/t.zip", ("t",)))
    assert "t is larger than 0 MB" in load_collection(None, ["toy"]).unavailable["toy"]


def test_an_archive_that_is_too_large_is_not_taken_for_a_part_of_it(server, toy, monkeypatch):
    server.content["/t.zip"] = content = zipped(t=csv_of(ROWS))
    toy(Archive(f"{server.url}/t.zip", ("t",)))
    monkeypatch.setattr("pu_bench.data.sources._LARGEST", len(content) - 1)
    assert load_collection(None, ["toy"]).unavailable["toy"] == (
        f"{server.url}/t.zip is larger than 0 MB"
    )
    monkeypatch.setattr("pu_bench.data.sources._LARGEST", len(content))
    assert "toy" in load_collection(None, ["toy"]).tables


def test_a_server_that_says_nothing_is_not_waited_for_without_end(server, toy, monkeypatch):
    monkeypatch.setattr("pu_bench.data.sources._TIMEOUT", 0.2)
    monkeypatch.setattr(server, "do_GET", lambda self: time.sleep(2))
    toy(Archive(f"{server.url}/t.zip", ("t",)))
    assert "timed out" in load_collection(None, ["toy"]).unavailable["toy"]


def test_of_an_error_with_a_long_story_the_first_line_is_told(toy, monkeypatch):
    def fails(**_):
        raise RuntimeError("no luck " * 100 + "\nand a long story")

    monkeypatch.setattr("pu_bench.data.sources.fetch_openml", fails)
    toy(OpenML(7))
    reason = load_collection(None, ["toy"]).unavailable["toy"]
    assert reason.startswith("https://www.openml.org/d/7: RuntimeError: no luck no luck")
    assert len(reason) < 250
    assert "story" not in reason


def test_a_damaged_cache_is_fetched_again(server, toy, own_cache):
    server.content["/t.zip"] = zipped(t=csv_of(ROWS))
    toy(Archive(f"{server.url}/t.zip", ("t",)))
    load_collection(None, ["toy"])
    kept = own_cache / "bench" / "toy.csv.gz"
    whole = kept.read_bytes()
    kept.write_bytes(whole[:-5])
    assert "toy" in load_collection(None, ["toy"]).tables
    assert kept.read_bytes() == whole
    assert server.asked == ["/t.zip", "/t.zip"]

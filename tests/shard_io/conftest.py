"""`prior-gen` in this process, and real servers of shards (S3 and the plain web).

The servers need `pip install puicl[dev]`.
"""

import functools
import http.server
import threading

import pytest
from web_server import QuietHandler


@pytest.fixture
def command(prior_gen_command):
    """Run `prior-gen`; exit code, stdout."""
    return lambda *words: prior_gen_command(*words)[:2]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PUICL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="session")
def s3_server():
    pytest.importorskip("s3fs")
    server = pytest.importorskip("moto.server").ThreadedMotoServer("127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(s3_server, monkeypatch, tmp_path):
    """An empty bucket's name and a file system that sees it, credentials in the environment."""
    for name, value in (
        ("AWS_ENDPOINT_URL", s3_server),
        ("AWS_ACCESS_KEY_ID", "someone"),
        ("AWS_SECRET_ACCESS_KEY", "something"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
    ):
        monkeypatch.setenv(name, value)
    fsspec = pytest.importorskip("fsspec")
    files = fsspec.filesystem("s3", use_listings_cache=False)
    name = f"b{abs(hash(tmp_path)):x}"
    files.mkdir(name)
    return name, files


@pytest.fixture
def serve():
    servers = []

    def start(folder):
        handler = functools.partial(QuietHandler, directory=str(folder))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.asked = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}", server.asked

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()

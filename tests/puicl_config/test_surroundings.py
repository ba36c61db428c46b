"""Which commit made something: its hash, whatever tags there are, and whether files differ."""

import importlib.util
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from puicl_config import cpu_facts, cpu_name

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def checkout(tmp_path):
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    root = tmp_path / "code"
    package = root / "puicl_config"
    package.mkdir(parents=True)
    shutil.copy(ROOT / "puicl_config" / "surroundings.py", package / "surroundings.py")

    def git(*arguments):
        who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        command = ["git", *who, *arguments]
        done = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    spec = importlib.util.spec_from_file_location("copied", package / "surroundings.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return git, module.git_commit, package


def test_a_commit_of_what_this_code_is_installed_into_is_not_its_own(checkout):
    git, found, _ = checkout
    git("-C", "..", "init", "-q")
    git("-C", "..", "commit", "-q", "--allow-empty", "-m", "of another project")
    assert git("rev-parse", "HEAD")
    assert found() is None


def test_a_checkout_without_git_has_no_commit(checkout, monkeypatch, tmp_path):
    git, found, _ = checkout
    git("init", "-q")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert found() is None


def test_a_hidden_proc_says_nothing_of_the_processor(monkeypatch, tmp_path):
    monkeypatch.setattr("puicl_config.surroundings.Path", lambda _: tmp_path / "cpuinfo")
    assert cpu_facts() == ""
    assert cpu_name() == platform.processor()


@pytest.mark.skipif(not Path("/proc/cpuinfo").is_file(), reason="looks into /proc")
def test_the_processor_is_named_as_the_system_names_it():
    told = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    if "model name" not in told:
        pytest.skip("this system does not name it")
    assert f": {cpu_name()}\n" in told
    assert cpu_name()


def test_the_commit_is_its_hash_and_says_where_files_differ(checkout):
    git, found, package = checkout
    assert found() is None  # no checkout
    git("init", "-q")
    assert found() is None  # nor a commit
    (package.parent / ".gitignore").write_text("__pycache__\n", encoding="utf-8")
    git("add", "-A")
    git("commit", "-q", "-m", "first")
    git("tag", "-a", "v1.0", "-m", "a release")
    assert found() == git("rev-parse", "HEAD")
    (package / "surroundings.py").write_text("# changed", encoding="utf-8")
    assert found() == git("rev-parse", "HEAD") + "-dirty"

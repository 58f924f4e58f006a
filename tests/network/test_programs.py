"""Programs that know nothing of MAS work through a session's network, by TLS from end to end and without settings."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.network.test_egress import play

NAME = "web.example.com"


def _run(*argv: str, cwd: Path | None = None) -> None:
    subprocess.run(argv, check=True, capture_output=True, cwd=cwd)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a web server shows by TLS: a page, a repository and a package; and the certificate to trust."""
    if not shutil.which("openssl"):
        pytest.skip("openssl, which makes the certificate, is not installed")
    place = tmp_path_factory.mktemp("shop")
    names = ["-addext", f"subjectAltName=DNS:{NAME}", "-addext", "basicConstraints=critical,CA:TRUE"]
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", f"{place}/key.pem"]
    _run("openssl", "req", "-x509", *key, "-out", f"{place}/cert.pem", "-days", "2", "-subj", f"/CN={NAME}", *names)
    www = place / "www"
    (www / "simple" / "masprobe").mkdir(parents=True)
    (www / "page.txt").write_text("a page of the shop")
    wheel = "masprobe-1.0-py3-none-any.whl"
    with zipfile.ZipFile(www / "simple" / "masprobe" / wheel, "w") as file:
        about = "masprobe-1.0.dist-info"
        file.writestr("masprobe.py", "WORDS = 'it works'\n")
        file.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: masprobe\nVersion: 1.0\n")
        file.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{about}/RECORD", "")
    (www / "simple" / "masprobe" / "index.html").write_text(f'<a href="{wheel}">{wheel}</a>')
    if shutil.which("git"):
        work = place / "work"
        _run("git", "init", "-q", str(work))
        (work / "file").write_text("of the repository")
        _run("git", "add", "file", cwd=work)
        _run("git", "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "one", cwd=work)
        _run("git", "clone", "-q", "--bare", str(work), str(www / "repository.git"))
        _run("git", "update-server-info", cwd=www / "repository.git")
    return place


def answer(shop: Path, *argv: str) -> str:
    """What a program prints inside a session's network."""
    found = play({"tls": str(shop)}, ("run", *argv))
    said: str = found["inside"][0]
    return said


def test_curl(shop: Path) -> None:
    if not shutil.which("curl"):
        pytest.skip("curl is not installed")
    said = answer(shop, "curl", "-sS", "--cacert", f"{shop}/cert.pem", f"https://{NAME}/page.txt")
    assert said == "0 a page of the shop"


def test_python(shop: Path) -> None:
    program = (
        "import ssl, urllib.request as u\n"
        f"context = ssl.create_default_context(cafile={str(shop / 'cert.pem')!r})\n"
        f"print(u.urlopen('https://{NAME}/page.txt', context=context).read().decode())"
    )
    assert answer(shop, sys.executable, "-c", program) == "0 a page of the shop\n"


def test_node(shop: Path) -> None:
    if not shutil.which("node"):
        pytest.skip("node is not installed")
    program = f"fetch('https://{NAME}/page.txt').then(r => r.text()).then(console.log)"
    said = answer(shop, "env", f"NODE_EXTRA_CA_CERTS={shop}/cert.pem", "node", "-e", program)
    assert said == "0 a page of the shop\n"


def test_git(shop: Path) -> None:
    if not shutil.which("git"):
        pytest.skip("git is not installed")
    words = ["env", f"GIT_SSL_CAINFO={shop}/cert.pem", "GIT_CONFIG_NOSYSTEM=1", "git", "clone", "-q"]
    script = 'where=$1; shift; "$@" "$where" copy && cat copy/file'
    said = answer(shop, "sh", "-c", script, "sh", f"https://{NAME}/repository.git", *words)
    assert said == "0 of the repository"


def test_pip(shop: Path) -> None:
    words = ["install", "-q", "--no-deps", "--target", "there", "--cert", f"{shop}/cert.pem", "--index-url"]
    pip = [sys.executable, "-m", "pip", "--isolated", "--disable-pip-version-check", "--no-cache-dir"]
    if subprocess.run([*pip, "--version"], capture_output=True, check=False).returncode:
        pytest.skip("pip is not installed")
    script = '"$@" && cat there/masprobe.py'
    # Variables of the machine that would count more than the arguments.
    plain = ["env", "-u", "REQUESTS_CA_BUNDLE", "-u", "CURL_CA_BUNDLE"]
    said = answer(shop, "sh", "-c", script, "sh", *plain, *pip, *words, f"https://{NAME}/simple/", "masprobe")
    assert said == "0 WORDS = 'it works'\n"


def test_npm(shop: Path) -> None:
    if not shutil.which("npm"):
        pytest.skip("npm is not installed")
    words = ["env", f"npm_config_cafile={shop}/cert.pem", f"npm_config_registry=https://{NAME}/", "HOME=."]
    said = answer(shop, *words, "npm", "ping", "--fetch-retries=0")
    # The shop is no registry: what it says shows that npm has reached it.
    assert "404" in said, said
    assert os.path.exists(shop / "www")

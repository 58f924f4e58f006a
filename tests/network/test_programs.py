"""Programs that know nothing of MAS work through a session's network, by TLS from end to end and without settings."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
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
    made = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]
    authority = ["-keyout", f"{place}/authority.pem", "-out", f"{place}/cert.pem", "-subj", "/CN=An authority"]
    _run(*made, *authority, "-addext", "basicConstraints=critical,CA:TRUE")
    signed = ["-CA", f"{place}/cert.pem", "-CAkey", f"{place}/authority.pem", "-subj", f"/CN={NAME}"]
    names = ["-addext", f"subjectAltName=DNS:{NAME}", "-addext", "basicConstraints=critical,CA:FALSE"]
    _run(*made, *signed, *names, "-keyout", f"{place}/key.pem", "-out", f"{place}/server.pem")
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
    _stock_npm(www)
    _stock_cargo(www)
    _stock_go(www)
    if shutil.which("git"):
        work = place / "work"
        _run("git", "init", "-q", str(work))
        (work / "file").write_text("of the repository")
        _run("git", "add", "file", cwd=work)
        _run("git", "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "one", cwd=work)
        _run("git", "clone", "-q", "--bare", str(work), str(www / "repository.git"))
        _run("git", "update-server-info", cwd=www / "repository.git")
    return place


def _packed(path: Path, files: dict[str, str]) -> bytes:
    with tarfile.open(path, "w:gz") as file:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            file.addfile(info, io.BytesIO(text.encode()))
    return path.read_bytes()


def _stock_npm(www: Path) -> None:
    about = {"name": "masnpm", "version": "1.0.0"}
    packed = _packed(www / "masnpm.tgz", {"package/package.json": json.dumps(about), "package/words": "it works"})
    where = {"tarball": f"https://{NAME}/masnpm.tgz", "shasum": hashlib.sha1(packed).hexdigest()}
    listing = {"name": "masnpm", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {**about, "dist": where}}}
    (www / "masnpm").write_text(json.dumps(listing))


def _stock_cargo(www: Path) -> None:
    crate = www / "crates" / "masprobe" / "1.0.0"
    crate.mkdir(parents=True)
    about = '[package]\nname = "masprobe"\nversion = "1.0.0"\nedition = "2021"\n'
    packed = _packed(
        crate / "download", {"masprobe-1.0.0/Cargo.toml": about, "masprobe-1.0.0/src/lib.rs": "// it works"}
    )
    line = {"name": "masprobe", "vers": "1.0.0", "deps": [], "features": {}, "yanked": False}
    index = www / "index" / "ma" / "sp"
    index.mkdir(parents=True)
    (index / "masprobe").write_text(json.dumps({**line, "cksum": hashlib.sha256(packed).hexdigest()}) + "\n")
    (www / "index" / "config.json").write_text(json.dumps({"dl": f"https://{NAME}/crates"}))


def _stock_go(www: Path) -> None:
    place = www / "go" / "example.org" / "masprobe" / "@v"
    place.mkdir(parents=True)
    (place / "v1.0.0.info").write_text('{"Version": "v1.0.0", "Time": "2024-01-01T00:00:00Z"}')
    (place / "v1.0.0.mod").write_text("module example.org/masprobe\n")
    with zipfile.ZipFile(place / "v1.0.0.zip", "w") as file:
        file.writestr("example.org/masprobe@v1.0.0/go.mod", "module example.org/masprobe\n")
        file.writestr("example.org/masprobe@v1.0.0/words.go", "package masprobe // it works\n")


def needs(program: str) -> str:
    found = shutil.which(program)
    if not found:
        pytest.skip(f"{program} is not installed")
    return found


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
    needs("npm")
    words = ["env", f"npm_config_cafile={shop}/cert.pem", f"npm_config_registry=https://{NAME}/", "HOME=."]
    npm = ["npm", "install", "--fetch-retries=0", "--no-audit", "--no-fund", "--prefix", "there", "masnpm"]
    said = answer(
        shop, "sh", "-c", '"$@" > said 2>&1 || cat said; cat there/node_modules/masnpm/words', "sh", *words, *npm
    )
    assert said == "0 it works"


def test_uv(shop: Path) -> None:
    uv = needs("uv")
    words = ["env", f"SSL_CERT_FILE={shop}/cert.pem", "UV_CACHE_DIR=cache", "UV_NO_CONFIG=1", "HOME=.", uv, "pip"]
    what = ["install", "-q", "--python", sys.executable, "--target", "there", "--index-url", f"https://{NAME}/simple/"]
    said = answer(shop, "sh", "-c", '"$@" && cat there/masprobe.py', "sh", *words, *what, "masprobe")
    assert said == "0 WORDS = 'it works'\n"


def test_cargo(shop: Path) -> None:
    cargo = needs("cargo")
    about = '[package]\nname = "x"\nversion = "1.0.0"\nedition = "2021"\n[dependencies]\nmasprobe = "1"\n'
    source = f'[source.crates-io]\nreplace-with = "shop"\n[source.shop]\nregistry = "sparse+https://{NAME}/index/"\n'
    script = (
        'mkdir -p x/src x/.cargo; cd x; : > src/lib.rs; echo "$1" > Cargo.toml; echo "$2" > .cargo/config.toml;'
        ' shift 2; "$@" && cat there/registry/src/*/masprobe-1.0.0/src/lib.rs'
    )
    words = ["env", f"CARGO_HTTP_CAINFO={shop}/cert.pem", "CARGO_HOME=there", cargo, "fetch", "-q"]
    assert answer(shop, "sh", "-c", script, "sh", about, source, *words).endswith("// it works")


def test_go(shop: Path) -> None:
    go = needs("go")
    words = [
        "env",
        f"SSL_CERT_FILE={shop}/cert.pem",
        f"GOPROXY=https://{NAME}/go",
        "GOSUMDB=off",
        "GOFLAGS=-modcacherw",
    ]
    script = 'export GOPATH="$PWD/there" GOCACHE="$PWD/cache"; "$@" && cat there/pkg/mod/example.org/*/words.go'
    said = answer(shop, "sh", "-c", script, "sh", *words, go, "mod", "download", "example.org/masprobe@v1.0.0")
    assert said == "0 package masprobe // it works\n"


def test_java(shop: Path) -> None:
    java, keytool = needs("java"), needs("keytool")
    if not shutil.which("javac"):
        pytest.skip("there is a Java without a compiler")
    source = (
        "public class Probe { public static void main(String[] a) throws Exception {"
        f' System.out.print(new String(new java.net.URL("https://{NAME}/page.txt").openStream().readAllBytes())); }} }}'
    )
    script = (
        'printf %s "$1" > Probe.java;'
        f' "$2" -importcert -noprompt -alias shop -file {shop}/cert.pem -keystore store -storepass changeit 2> no;'
        ' "$3" -Djavax.net.ssl.trustStore=store -Djavax.net.ssl.trustStorePassword=changeit Probe.java'
    )
    assert answer(shop, "sh", "-c", script, "sh", source, keytool, java).endswith("a page of the shop")

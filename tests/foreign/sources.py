# SPDX-License-Identifier: MIT
"""Debian's source packages, fetched once into a folder of our own; the machine's apt is asked, and not changed.

The sources' list is made of the machine's own: the same archives, as deb-src.
"""
import fcntl
import glob
import os
import re
import signal
import subprocess
import tempfile

from harness import Broken, Missing, need

CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "greenprof-foreign")
APT = os.path.join(CACHE, "apt")
LIMIT_SECONDS = {"update": 120, "source": 600}


def write_lists():
    parts = os.path.join(APT, "parts")
    for folder in (parts, os.path.join(APT, "lists", "partial"), os.path.join(APT, "cache", "archives", "partial")):
        os.makedirs(folder, exist_ok=True)
    for path in ["/etc/apt/sources.list", *glob.glob("/etc/apt/sources.list.d/*.list"),
                 *glob.glob("/etc/apt/sources.list.d/*.sources")]:
        if not os.path.exists(path):
            continue
        with open(path) as file:
            text = file.read()
        if path.endswith(".sources"):
            text = re.sub(r"(?m)^Types:.*$", "Types: deb-src", text)
        else:
            text = "".join(re.sub("^deb ", "deb-src ", line) + "\n" for line in text.splitlines()
                           if line.startswith("deb "))
        with open(os.path.join(parts, os.path.basename(path)), "w") as file:
            file.write(text)


def apt_get(command, *arguments):
    """Returns (status, output)."""
    options = {"Dir::Etc::sourcelist": "/dev/null", "Dir::Etc::sourceparts": os.path.join(APT, "parts"),
               "Dir::State::lists": os.path.join(APT, "lists"), "Dir::Cache": os.path.join(APT, "cache"),
               "Acquire::http::Timeout": "30", "Acquire::Retries": "1", "APT::Sandbox::User": ""}
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    need("apt-get", "dpkg-source")
    with tempfile.TemporaryFile("w+") as output:  # no pipe: what apt-get starts may outlive it
        process = subprocess.Popen(["apt-get", *words, "-q", command, *arguments], cwd=CACHE, stdin=subprocess.DEVNULL,
                                   stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            status = process.wait(LIMIT_SECONDS[command])
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return "no end", f"E: apt-get {command} takes longer than {LIMIT_SECONDS[command]} s"
        output.seek(0)
        return status, output.read()


def versions_of(package):
    """The newest first. An archive of security updates does not always have its sources."""
    options = ["-o", "Dir::Etc::sourcelist=/dev/null", "-o", f"Dir::Etc::sourceparts={APT}/parts",
               "-o", f"Dir::State::lists={APT}/lists", "-o", f"Dir::Cache={APT}/cache"]
    text = subprocess.run(["apt-cache", *options, "showsrc", package], text=True, capture_output=True).stdout
    found = sorted(set(re.findall(r"(?m)^Package: (\S+)\n(?:.*\n)*?Version: (\S+)", text)))
    versions = [version for name, version in found if name == package]
    for i in range(len(versions)):
        for j in range(i):
            if subprocess.run(["dpkg", "--compare-versions", versions[i], "gt", versions[j]]).returncode == 0:
                versions[i], versions[j] = versions[j], versions[i]
    return versions


def alone(function):
    """One process at a time works in the cache."""
    def locked(*arguments):
        os.makedirs(CACHE, exist_ok=True)
        with open(os.path.join(CACHE, f"lock.{function.__name__}"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return function(*arguments)
    return locked


@alone
def source(package):
    """The folder of a source package, unpacked and patched as Debian has it."""
    folder = os.path.join(CACHE, "source", package)
    if os.path.isdir(folder):
        return folder
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    write_lists()
    status, output = apt_get("update")
    if status != 0:
        raise Missing(f"the lists of Debian's source packages cannot be had: {output[-500:]}")
    for version in versions_of(package):
        status, output = apt_get("source", "--download-only", f"{package}={version}")
        if status == 0:
            break
    else:
        raise Missing(f"the source package {package} cannot be had: {''.join(re.findall('(?m)^E: .*', output))}")
    description = os.path.join(CACHE, f"{package}_{version.split(':')[-1]}.dsc")
    unpacked = folder + ".new"
    subprocess.run(["rm", "-rf", unpacked], check=True)
    done = subprocess.run(["dpkg-source", "--no-check", "-x", description, unpacked], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise Broken(f"dpkg-source {description}: {done.stdout[-500:]}")
    os.rename(unpacked, folder)
    return folder


@alone
def build(package, name, command):
    """Run a shell command once, in a copy of the source made for it; its failure is one of the suite. Returns the
    folder."""
    folder = os.path.join(CACHE, "built", name)
    done = os.path.join(folder, ".built")
    if os.path.exists(done):
        with open(done) as file:
            if file.read() == command:
                return folder
    origin = source(package)
    subprocess.run(["rm", "-rf", folder], check=True)
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    subprocess.run(["cp", "-a", origin, folder], check=True)
    log = folder + ".log"
    with open(log, "w") as output:
        built = subprocess.run(["sh", "-euc", command], cwd=folder, stdin=subprocess.DEVNULL, stdout=output,
                               stderr=subprocess.STDOUT)
    if built.returncode != 0:
        with open(log) as output:
            raise Broken(f"{name} does not build, see {log}:\n{''.join(output.readlines()[-20:])}")
    with open(done, "w") as file:
        file.write(command)
    return folder

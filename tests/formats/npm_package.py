"""Readers that come from npm."""
import os, shutil, subprocess


class Missing(Exception):
    pass


def fetch(directory, package, version):
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
                                 f"{package}@{version}"], capture_output=True, text=True, timeout=25)
    except subprocess.TimeoutExpired:
        raise Missing(f"npm could not fetch {package} in 25 s")
    if result.returncode != 0 or not os.path.exists(os.path.join(folder, "package.json")):
        raise Missing(f"npm could not fetch {package}: " + result.stderr.strip()[-200:])
    return folder

# SPDX-License-Identifier: MIT
"""What is packaged here, in a room of a newer Debian: the wheel in a venv of each of its Pythons, and the Debian packages.

usage: test_rooms.py SUITE SOURCE_ROOT BUILD FOLDER PACKAGES
"""
import glob
import io
import os
import pstats
import sys
import tarfile
import tempfile

SUITE, ROOT, BUILD, FOLDER, PACKAGES = sys.argv[1:]
sys.argv[1:] = [SUITE]
for _name in ("WAITS", "GREENPROF", "PROGRAMS"):  # of test_suites.py, whose rooms are wanted alone
    os.environ.setdefault(_name, "")
sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), *place) for place in ([".."], ["..", "suites"], ["..", "..", "tools", "wheel"])]
import backend  # noqa: E402
import helpers  # noqa: E402
import measured  # noqa: E402
import test_suites  # noqa: E402

PYTHONS = {"trixie": ["python3.13"], "sid": ["python3.14", "python3.15", "python3.13"]}[SUITE]
PROGRAM = """
import sys, time
def spin(end):
    while time.thread_time() < end: pass
def twice(): spin(time.thread_time() + 0.4)
def once(): spin(time.thread_time() + 0.2)
if len(sys.argv) > 1:
    import greenprof
    profile = greenprof.Profile()
    profile.start(); twice(); once(); profile.stop()
    profile.dump_stats(sys.argv[1])
else:
    twice(); once()
"""
SCRIPT = r"""
exec 3>&1 >&2
set -e
apt="apt-get -q -y -o Acquire::Check-Valid-Until=false -o Acquire::Retries=5 --no-install-recommends"
export DEBIAN_FRONTEND=noninteractive
$apt update && $apt install python3 python3-pip || { echo "no packages"; exit 77; }
for python in $PYTHONS; do $apt install $python || echo "no $python"; done
mkdir /tmp/out && cd /tmp/out
printf '%s' "$PROGRAM" >/tmp/app.py
profile() { # NAME COMMAND PYTHON
    { "$2" run -q -o $1.greenprof -- $3 /tmp/app.py && "$2" export --format pstats $1.greenprof -o $1.run.prof && $3 /tmp/app.py $1.import.prof; } 2>$1.err || echo "status $?" >>$1.err
}
for python in $PYTHONS; do
    command -v $python || continue
    $python -m venv --without-pip /tmp/$python
    python3 -m pip --python /tmp/$python/bin/python install --no-index "$WHEEL"
    profile wheel-$python /tmp/$python/bin/greenprof /tmp/$python/bin/python
done
[ -z "$DEBS" ] || if $apt install $DEBS 2>refusal; then
    for python in $PYTHONS; do ! command -v $python || profile deb-$python greenprof $python; done
else
    mv refusal deb-refused
fi
tar -c . >&3
"""
OUT = tempfile.TemporaryDirectory()


def setUpModule():
    os.makedirs(FOLDER, exist_ok=True)
    wheel = os.path.join(FOLDER, backend.build_wheel(FOLDER, {"build": BUILD}))
    debs = [path for name in ("libgreenprof0", "python3-greenprof") for path in glob.glob(os.path.join(PACKAGES, name + "_*.deb"))]
    told = {"WHEEL": wheel, "DEBS": " ".join(debs), "PYTHONS": " ".join(PYTHONS), "PROGRAM": PROGRAM, "PYTHONDONTWRITEBYTECODE": "1",
            "GREENPROF_FREQUENCY": "1000"}
    done = test_suites.in_room("env", *(f"{name}={value}" for name, value in told.items()), "sh", "-c", SCRIPT)
    helpers.need(done.returncode == 0, f"no room of {SUITE}: {done.stderr.decode().strip()[-400:]}")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(OUT.name)


class Rooms(measured.Case):
    def check_runs(self, kind):
        done = 0
        for python in PYTHONS:
            name = os.path.join(OUT.name, f"{kind}-{python}.")
            if not os.path.exists(name + "err"):
                print(f"{python} is not in {SUITE}", file=sys.stderr)
                continue
            with open(name + "err", encoding="utf-8") as said:
                self.assertEqual(said.read(), "", python)
            for way in ("run", "import"):
                stats = {function: row[3] for (_, _, function), row in pstats.Stats(f"{name}{way}.prof").stats.items()}
                self.near(f"of {python}'s time in twice() by {way}", stats["twice"] / (stats["once"] + stats["twice"]), 2 / 3, 0.1, samples=600)
            done += 1
        self.assertGreater(done, 0)

    def test_wheel(self):
        self.check_runs("wheel")

    def test_debian_packages(self):
        helpers.need(glob.glob(os.path.join(PACKAGES, "libgreenprof0_*.deb")), "test `package` has made no packages")
        refused = os.path.join(OUT.name, "deb-refused")
        if os.path.exists(refused):
            with open(refused, encoding="utf-8") as said:
                refusal = said.read()
            helpers.need("Failed to fetch" not in refusal, refusal)
            self.fail(f"{SUITE} does not install Debian packages of this one: {refusal}")
        self.check_runs("deb")


if __name__ == "__main__":
    helpers.main(argv=sys.argv[:1])

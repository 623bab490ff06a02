# SPDX-License-Identifier: MIT
"""The manifest for Kubernetes: kubectl knows every field of it, and its containers run as it says, by bubblewrap: commands,
environment, volumes, user, no capabilities, a root that cannot be written, a filter of system calls."""
import json
import os
import shutil
import struct
import subprocess
import time
import unittest

from support import CORE, GREENPROF, Case, example

try:
    import yaml
except ImportError:
    yaml = None

PROGRAM = """
import os, time
def burn_cpu():
    end = time.process_time() + 0.7
    while time.process_time() < end:
        pass
burn_cpu()
status = open("/proc/self/status").read()
print(*(line for line in status.splitlines() if line.startswith(("Uid", "CapEff", "NoNewPrivs", "Seccomp:"))), sep="\\n")
try:
    open("/written", "w")
    print("the root can be written")
except OSError:
    pass
"""
# Calls denied by Docker's and containerd's default without capabilities, the numbers on x86-64; clone3: ENOSYS there.
DENIED = {"perf_event_open": 298, "bpf": 321, "userfaultfd": 323, "add_key": 248, "keyctl": 250, "mount": 165, "umount2": 166,
          "unshare": 272, "setns": 308, "open_by_handle_at": 304, "kexec_load": 246, "init_module": 175, "clone3": 435}
EPERM, ENOSYS = 1, 38
FIELDS = {"metadata.name": "api-7d9f", "metadata.namespace": "shop", "spec.nodeName": "node-1"}


def default_filter():
    """Source: seccomp(2): seccomp_data begins with the number; a program of classic BPF."""
    load, equal, give = 0x20, 0x15, 0x06
    lines = [(load, 0, 0, 0)]
    for name, number in DENIED.items():
        lines += [(equal, 0, 1, number), (give, 0, 0, 0x00050000 | (ENOSYS if name == "clone3" else EPERM))]
    lines.append((give, 0, 0, 0x7fff0000))
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def missing_of(wanted, found, at=""):
    """Fields of the one that the other has not, or has otherwise."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return [path for key, value in wanted.items() for path in missing_of(value, found.get(key), f"{at}.{key}")]
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        return [path for i, value in enumerate(wanted) for path in missing_of(value, found[i], f"{at}[{i}]")]
    return [] if wanted == found else [at]


class Kubernetes(Case):
    def setUp(self):
        super().setUp()
        if yaml is None:
            self.skipTest("no python3-yaml")
        self.text = example("Kubernetes", "kind: Pod")
        self.pod = yaml.safe_load(self.text)

    def read_by_kubectl(self, text):
        with open(self.path("pod.yaml"), "w", encoding="utf-8") as file:
            file.write(text)
        done = subprocess.run(["kubectl", "set", "image", "--local", "-f", self.path("pod.yaml"), "ship=another", "-o", "json"],
                              capture_output=True, text=True, timeout=120, env={**os.environ, "HOME": self.folder, "KUBECONFIG": "/dev/null"})
        self.assertEqual(done.returncode, 0, done.stderr)
        pod = json.loads(done.stdout)
        self.assertEqual(pod["spec"]["containers"][1].pop("image"), "another")
        return pod

    def test_kubectl_knows_it(self):
        if shutil.which("kubectl") is None:
            self.skipTest("no kubectl")
        self.assertEqual(missing_of(self.pod, self.read_by_kubectl(self.text)), [".spec.containers[1].image"])
        wrong = self.text.replace("readOnlyRootFilesystem", "readOnlyRootFileSystem")  # mistakes are found
        self.assertEqual(len(missing_of(yaml.safe_load(wrong), self.read_by_kubectl(wrong))), 1 + 3)

    def sandbox(self, container):
        """The container, as bubblewrap's options."""
        spec, own = self.pod["spec"]["securityContext"], container["securityContext"]
        self.assertEqual((own["readOnlyRootFilesystem"], own["allowPrivilegeEscalation"], own["capabilities"], spec["runAsNonRoot"],
                          spec["seccompProfile"]), (True, False, {"drop": ["ALL"]}, True, {"type": "RuntimeDefault"}))
        words = ["bwrap", "--unshare-all", "--die-with-parent", "--uid", spec["runAsUser"], "--gid", spec["runAsGroup"], "--cap-drop", "ALL",
                 "--tmpfs", "/", "--proc", "/proc", "--dev", "/dev"]
        for path in ("/usr", "/bin", "/lib", "/lib64", "/etc"):
            if os.path.islink(path):
                words += ["--symlink", os.readlink(path), path]
            elif os.path.isdir(path):
                words += ["--ro-bind", path, path]
        words += ["--ro-bind", GREENPROF, "/image/greenprof", "--ro-bind", CORE, "/image/libgreenprof-core.so.0", "--bind", self.store, "/store"]
        volumes = {volume["name"] for volume in self.pod["spec"]["volumes"] if "emptyDir" in volume}
        for mount in container["volumeMounts"]:
            self.assertIn(mount["name"], volumes)
            words += ["--ro-bind" if mount.get("readOnly") else "--bind", self.path(mount["name"]), mount["mountPath"]]
        words += ["--remount-ro", "/", "--clearenv", "--setenv", "PATH", "/image:/usr/bin:/bin"]
        for variable in container.get("env", []):
            value = variable["value"] if "value" in variable else FIELDS[variable["valueFrom"]["fieldRef"]["fieldPath"]]
            words += ["--setenv", variable["name"], value]
        reading, writing = os.pipe()
        os.write(writing, default_filter())
        os.close(writing)
        self.addCleanup(os.close, reading)
        return [*map(str, words), "--seccomp", str(reading)], reading

    def begin(self, kind, name):
        """Start a container with its own command line, but for what is outside of the pod."""
        container, = (item for item in self.pod["spec"][kind] if item["name"] == name)
        words, descriptor = self.sandbox(container)
        command = [word.replace("/usr/lib/x86_64-linux-gnu/libgreenprof-core.so.0", "/image/libgreenprof-core.so.0")
                   .replace("clickhouse://store/profiles", "slow+file:///store?over=1s") for word in container["command"]]
        if command == ["PROGRAM"]:
            command = ["/usr/bin/python3", "-c", PROGRAM]
        process = subprocess.Popen([*words, "--", *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True, pass_fds=[descriptor])
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_its_containers_run(self):
        if shutil.which("bwrap") is None or subprocess.run(["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"]).returncode != 0:
            self.skipTest("no bubblewrap, or no namespaces to be had")
        self.store = self.path("store")
        for name in ["store", *(volume["name"] for volume in self.pod["spec"]["volumes"])]:
            os.makedirs(self.path(name), exist_ok=True)
        for container in self.pod["spec"]["initContainers"]:
            process = self.begin("initContainers", container["name"])
            self.assertEqual((process.communicate(timeout=120)[0], process.returncode), ("", 0))
        service, ship = self.begin("containers", "api"), self.begin("containers", "ship")
        said, _ = service.communicate(timeout=120)
        self.assertEqual(service.returncode, 0, said)
        self.assertRegex(said, r"^Uid:\s+10001\s.*\nCapEff:\s+0+\nNoNewPrivs:\s+1\nSeccomp:\s+2\n$")
        start = time.monotonic()
        while not (shipped := self.shipped()):
            self.assertIsNone(ship.poll())
            self.assertLess(time.monotonic() - start, 120)
            time.sleep(0.1)
        self.assertRegex(shipped, r"burn_cpu")
        self.assertRegex(shipped, r"asked for 100 Hz, (cpu|monotonic) clock")  # perf is denied

    def shipped(self):
        """The report of the capture, once the journal says that all of it has arrived."""
        capture, = (path for path in self.recorded() if os.path.basename(path).startswith("api-"))
        with open(os.path.join(self.captures, "state", "ship.journal"), encoding="ascii") as file:
            lines = [line.split() for line in file]
        has_all = any(line[1] == "B" and int(line[-1]) >= os.path.getsize(capture) for line in lines)
        text = self.report(capture) if has_all and lines[-1][1] == "E" else "has no end"
        return None if "has no end" in text else text


if __name__ == "__main__":
    unittest.main(argv=["test_kubernetes.py"])

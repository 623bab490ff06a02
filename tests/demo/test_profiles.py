# SPDX-License-Identifier: MIT
"""What the demo service's profiles hold: of many requests at once, each its own work and nothing else."""

import concurrent.futures
import os
import pstats
import subprocess
import unittest

from service import GREENPROF, ServiceTest

# The functions that only a request for the path runs.
OWN = {
    "/report": {"handle_report", "report_line"},
    "/report?by=customer": {"handle_report", "report_line"},
    "/search?q=urgent": {"handle_search", "search_hit"},
    "/proxy?delay=60": {"handle_proxy"},
    "/mixed?delay=60": {"handle_mixed", "scatter_upstream", "scatter_forecast", "resample_mean"},
}
# The upstream is another service: its work carries the trace, but is no part of the request.
UPSTREAM = {"handle_stock"}
ALL = set.union(UPSTREAM, *OWN.values())
CLIENTS = 64


def load_all(service, paths):
    """One request a client, all at once. Returns (path, headers) of each."""

    def client(number):
        path = paths[number % len(paths)]
        status, headers, _ = service.get(path, Accept_Encoding="gzip")
        assert status == 200, (path, status)
        return path, headers

    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as clients:
        return list(clients.map(client, range(CLIENTS)))


def functions_of(profile):
    return {name for _, _, name in profile.stats}


def cumulative_of(profile, function):
    return sum(row[3] for (_, _, name), row in profile.stats.items() if name == function)


class Profiles(ServiceTest):
    def check_request(self, service, path, headers):
        """Returns the request's profile."""
        profile = pstats.Stats(str(service.profile_dir / (headers["X-Request-Id"] + ".prof")))
        self.assertLessEqual(functions_of(profile) & ALL, OWN[path], path)
        cpu_seconds = int(headers["X-Cpu-Us"]) / 1e6
        self.near(f"total of {path}", profile.total_tt, cpu_seconds, 0.005, 5e-6)
        return profile

    def check_all(self, *options):
        service = self.start("--rows", "10000", *options, profiles=True)
        profiles = {path: [] for path in OWN}
        for path, headers in load_all(service, list(OWN)):
            profiles[path].append(self.check_request(service, path, headers))
        left = {file.suffix for file in service.profile_dir.iterdir()}
        self.assertEqual(left, {".prof"})
        return profiles

    def test_each_request_gets_its_own_work(self):
        profiles = self.check_all()
        for path in ("/report", "/report?by=customer", "/search?q=urgent"):
            handler = "handle_" + path[1:7]
            total = sum(profile.total_tt for profile in profiles[path])
            own = sum(cumulative_of(profile, handler) for profile in profiles[path])
            self.at_least(path, own, 0.9 * total)

    def test_children_belong_to_their_request(self):
        mixed = self.check_all()["/mixed?delay=60"]
        seen = set.union(*(functions_of(profile) for profile in mixed))
        self.assertLessEqual({"scatter_forecast", "scatter_upstream"}, seen)

    def test_two_threads(self):
        self.check_all("--threads", "2")

    def test_folder_that_cannot_be_written(self):
        service = self.start("--rows", "10", profiles=True)
        service.profile_dir.rmdir()
        status, headers, _ = service.get("/health")
        self.assertEqual((status, "X-Cpu-Us" in headers), (200, True))


class Capture(ServiceTest):
    def export(self, capture, trace):
        """Microseconds by stack."""
        command = [GREENPROF, "export", capture, "--format", "folded", "--trace", trace]
        text = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
        return {stack: int(weight) for stack, _, weight in
                (line.rpartition(" ") for line in text.splitlines())}

    def test_a_trace_holds_the_request_and_its_upstream(self):
        capture = os.path.join(self.temporary.name, "service.greenprof")
        service = self.start("--rows", "10000", "--threads", "2", profiles=True,
                             wrapper=(GREENPROF, "run", "--quiet", "-o", capture, "-F", "1000", "--"))
        answers = load_all(service, list(OWN))
        self.assertEqual(service.stop(), 0)
        stocked = 0
        for path, headers in answers:
            stacks = self.export(capture, headers["X-Trace-Id"])
            functions = {name for stack in stacks for name in stack.split(";")}
            waits = "delay" in path
            self.assertLessEqual(functions & ALL, OWN[path] | (UPSTREAM if waits else set()), path)
            stocked += "handle_stock" in functions
            if not waits:
                cpu_us = int(headers["X-Cpu-Us"])
                self.near(path, sum(stacks.values()), cpu_us, 0.1, 5000)
        self.assertGreater(stocked, 0)


if __name__ == "__main__":
    unittest.main()

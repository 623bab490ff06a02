# SPDX-License-Identifier: MIT
"""greenprof ship to receivers other than ClickHouse: what arrives, after failures as well."""
import base64, gzip, json, os, shutil, subprocess, sys, tempfile, unittest

HERE = os.path.dirname(os.path.abspath(__file__))
FORMATS = os.path.join(HERE, "..", "formats")
sys.path[:0] = [FORMATS, os.path.join(HERE, "..")]
import npm_package, protoc_reader, receiver  # noqa: E402 (the reader is next door)
from helpers import until  # noqa: E402

GREENPROF, MAKE_CAPTURE = os.environ["GREENPROF"], os.environ["MAKE_CAPTURE"]
# The folder of an opentelemetry-proto checkout: then its own files decode the bodies as well.
OFFICIAL = os.environ.get("OPENTELEMETRY_PROTO")
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SCRIPT = """
header frequency=1000 realtime=1700000000000000000
meta exe /opt/app/server
meta hostname web-1
module 1 /opt/app/server 0102 0x1000 0x9000 0x0
thread 1 10 1 0 main
coro 1 0 - 0x1000 0x1000 1 1 -
coro 2 1 1:40 0x3000 0x1000 2 0 handler
trace 1 4bf92f3577b34da6a3ce929d0e0e4736
stack 1 0 1:10 1:20
stack 2 0 1:11 1:20
stack 3 0 function:1:7 1:20
function 1 3 serve /src/server.py
sample 1000000 1000000 2 1 1 1
sample 2000000 3000000 2 1 3 1
sample 20000000 10000000 2 1 2 1 2
sample 21000000 500000 1 1 1 0
sample 12000000000 700000 2 1 1 1
span 77 0 2 2 0 25000000 1 3 16 GET /x
span 78 77 2 2 1000000 2000000 1 6 0 SELECT
end 13000000000 0
"""
START = 1700000000


def read(path):
    with open(path, "rb") as file:
        return file.read()


class Send(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="greenprof-send-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.capture = os.path.join(self.folder, "api.greenprof")
        with open(self.capture, "wb") as file:
            file.write(self.make(SCRIPT))

    def make(self, script):
        path = os.path.join(self.folder, "made")
        subprocess.run([MAKE_CAPTURE, path], input=script.encode(), check=True)
        with open(path, "rb") as file:
            return file.read()

    def ship(self, *urls, status=0, environment=None):
        """Ship all that is there; returns what was said."""
        command = [GREENPROF, "ship", "--once", "--state", os.path.join(self.folder, "state"), self.capture]
        env = {"PATH": os.environ["PATH"], "HOME": self.folder, "no_proxy": "*",
               "GREENPROF_LABELS": "service=shop,version=v1.2,tenant=blue,rack=r7", **(environment or {})}
        result = subprocess.run(command + [word for url in urls for word in ("--to", url)], capture_output=True, text=True,
                                env=env, stdin=subprocess.DEVNULL, timeout=120)
        self.assertEqual(result.returncode, status, result.stderr)
        return result.stderr

    def decoded(self, request, proto, message, official):
        path = os.path.join(self.folder, "body")
        with open(path, "wb") as file:
            file.write(request.body)
        if OFFICIAL:
            full = "opentelemetry.proto." + official
            name = "opentelemetry/proto/collector/" + official.split(".")[1] + "/" + official.split(".")[2]
            result = subprocess.run(["protoc", "-I" + OFFICIAL, "--decode=" + full,
                                     name + "/" + official.split(".")[1] + "_service.proto"],
                                    input=request.body, capture_output=True, check=True)
            self.assertEqual(result.stderr, b"")
            self.assertNotRegex(result.stdout.decode(), r"(?m)^ *[0-9]+(:| \{)")
        return protoc_reader.decode(path, proto, message)

    def profile(self, request):
        """(what, start in s, {(stack, coroutine, trace): value}, attributes of the resource)"""
        self.assertEqual((request.path[-len("/v1development/profiles"):], request.headers["content-type"], request.headers["content-encoding"]),
                         ("/v1development/profiles", "application/x-protobuf", "gzip"))
        data = self.decoded(request, os.path.join(FORMATS, "otlp.proto"), "otlp.ProfilesData",
                            "collector.profiles.v1development.ExportProfilesServiceRequest")
        tables, resource = data["dictionary"][0], data["resource_profiles"][0]
        strings = [text.decode() for text in tables["string_table"]]
        profile = resource["scope_profiles"][0]["profiles"][0]
        rows = {}
        for sample in profile["samples"]:
            stack = tables["stack_table"][sample["stack_index"][0]]["location_indices"]
            names = [strings[tables["function_table"][line["function_index"][0]]["name_strindex"][0]]
                     for place in reversed(stack) for line in reversed(tables["location_table"][place]["lines"])]
            labels = {strings[tables["attribute_table"][i]["key_strindex"][0]]: tables["attribute_table"][i]["value"][0]
                      for i in sample.get("attribute_indices", [])}
            link = tables["link_table"][sample.get("link_index", [0])[0]]["trace_id"][0].hex()
            rows[";".join(names), labels["coroutine.name"]["string_value"][0].decode(), link] = sample["values"][0]
        return (strings[profile["sample_type"][0]["type_strindex"][0]], profile["time_unix_nano"][0] // 10 ** 9, rows,
                self.attributes(resource["resource"][0]["attributes"]))

    @staticmethod
    def attributes(pairs):
        return {pair["key"][0].decode(): (pair["value"][0]["string_value"][0].decode() if "string_value" in pair["value"][0]
                                          else pair["value"][0]["int_value"][0]) for pair in pairs}

    RESOURCE = {"service.name": "shop", "service.version": "v1.2", "service.namespace": "blue", "host.name": "web-1",
                "rack": "r7"}
    ROWS = [("cpu", START, {("server+0x20;server+0x10", "server+0x40", TRACE): 1000000,
                            ("server+0x20;serve", "server+0x40", TRACE): 3000000,
                            ("server+0x20;server+0x10", "[thread main]", "0" * 32): 500000}),
            ("wall", START, {("server+0x20;server+0x10", "server+0x40", TRACE): 1000000,
                             ("server+0x20;serve", "server+0x40", TRACE): 3000000,
                             ("server+0x20;server+0x11;[parked]", "server+0x40", TRACE): 10000000,
                             ("server+0x20;server+0x10", "[thread main]", "0" * 32): 500000}),
            ("cpu", START + 10, {("server+0x20;server+0x10", "server+0x40", TRACE): 700000}),
            ("wall", START + 10, {("server+0x20;server+0x10", "server+0x40", TRACE): 700000}),
            ("latency", START, {("[waiting]", "server+0x40", TRACE): 25000000})]

    def check_profiles(self, requests):
        found = [self.profile(request) for request in requests if request.path.endswith("/profiles")]
        self.assertEqual([profile[:3] for profile in found], self.ROWS)
        for profile in found:
            self.assertLessEqual(self.RESOURCE.items(), profile[3].items())

    def check_traces(self, requests):
        request, = [request for request in requests if request.path == "/v1/traces"]
        data = self.decoded(request, os.path.join(HERE, "trace.proto"), "otlp.TracesData",
                            "collector.trace.v1.ExportTraceServiceRequest")
        resource, = data["resource_spans"]
        self.assertLessEqual(self.RESOURCE.items(), self.attributes(resource["resource"][0]["attributes"]).items())
        first, second = resource["scope_spans"][0]["spans"]
        self.assertEqual((first["trace_id"], first["span_id"], first["name"], first["kind"], first["status"]),
                         ([bytes.fromhex(TRACE)], [(77).to_bytes(8, "big")], [b"GET /x"], [2], [{"code": [2]}]))
        self.assertEqual((second["parent_span_id"], second["name"], second["kind"]), ([(77).to_bytes(8, "big")], [b"SELECT"], [3]))
        self.assertNotIn("status", second)
        self.assertEqual([first["start_time_unix_nano"][0], first["end_time_unix_nano"][0]],
                         [START * 10 ** 9, START * 10 ** 9 + 25000000])
        self.assertEqual(self.attributes(second["attributes"])["greenprof.kind"], "database")

    def test_otlp(self):
        with receiver.Receiver() as there:
            self.assertEqual(self.ship(f"otlp+http://127.0.0.1:{there.port}"), "")
            self.check_profiles(there.requests)
            self.check_traces(there.requests)
            self.assertEqual(self.ship(f"otlp+http://127.0.0.1:{there.port}"), "")
            self.assertEqual(len(there.requests), 6, "nothing is sent twice")

    def test_generated_decoder(self):
        """Spans, read by the decoder that OpenTelemetry's own JavaScript package has of the official protos: nothing is left over
        (encoded again it is as long). By hand, with FLEET_NPM=FOLDER, as it is fetched with npm; profiles are not in it:
        OPENTELEMETRY_PROTO, above, is for these."""
        if not os.environ.get("FLEET_NPM"):
            self.skipTest("by hand: FLEET_NPM=FOLDER")
        folder = npm_package.fetch(os.environ["FLEET_NPM"], "@opentelemetry/otlp-transformer", "0.57.2", limit_s=120)
        with receiver.Receiver() as there:
            self.assertEqual(self.ship(f"otlp+http://127.0.0.1:{there.port}?signals=traces"), "")
            request, = there.requests
        script = ("const {opentelemetry} = require(process.argv[1] + '/build/src/generated/root.js');"
                  "const type = opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest;"
                  "const body = require('fs').readFileSync(0), read = type.decode(body);"
                  "console.log(JSON.stringify([type.encode(read).finish().length, body.length, type.toObject(read, {bytes: String, "
                  "longs: String})]));")
        done = subprocess.run(["node", "-e", script, folder], input=request.body, capture_output=True, check=True, timeout=60)
        again, length, data = json.loads(done.stdout)
        self.assertEqual(again, length)
        spans = data["resourceSpans"][0]["scopeSpans"][0]["spans"]
        self.assertEqual([(span["name"], span["kind"], base64.b64decode(span["traceId"]).hex()) for span in spans],
                         [("GET /x", 2, TRACE), ("SELECT", 3, TRACE)])
        self.assertEqual(spans[0]["startTimeUnixNano"], str(START * 10**9))

    def test_otlp_failures(self):
        """What was taken is not sent again, what was not taken is."""
        with receiver.Receiver() as there:
            there.faults = [None, 500, None, (429, {"Retry-After": "1"}), None, "slow"]
            said = self.ship(f"otlp+http://127.0.0.1:{there.port}")
            self.assertEqual((there.faults, there.refused), ([], 2))
            self.check_profiles(there.requests)
            self.check_traces(there.requests)
            self.assertIn("status 500: not now please; trying again", said)
            there.faults, there.requests = ["cut", None, 503], []
            self.ship(f"otlp+http://127.0.0.1:{there.port}/other")
            self.check_profiles(there.requests)

    def test_otlp_lost_answer(self):
        with receiver.Receiver() as there:
            there.faults = ["lost"]
            self.ship(f"otlp+http://127.0.0.1:{there.port}")
            self.assertEqual(there.requests[0].body, there.requests[1].body)
            self.check_profiles(there.requests[1:])

    def test_otlp_signals_and_path(self):
        with receiver.Receiver() as there:
            self.ship(f"otlp+http://127.0.0.1:{there.port}/a%20b/?signals=traces")
            self.assertEqual([request.path for request in there.requests], ["/a%20b/v1/traces"])

    def test_otlp_partial_success(self):
        """ExportProfilesServiceResponse {partial_success {rejected_profiles: 3, error_message: "too old"}}"""
        with receiver.Receiver(b"\x0a\x0b\x08\x03\x12\x07too old") as there:
            said = self.ship(f"otlp+http://127.0.0.1:{there.port}")
            self.assertEqual(len(there.requests), 6)
            self.assertIn("3 samples or spans were refused: too old", said)
            self.assertIn("18 samples and spans were refused in all", said)
        with receiver.Receiver(b"\x0a\xff\xff\xff\x08garbage") as there:
            self.assertEqual(self.ship(f"otlp+http://127.0.0.1:{there.port}/other"), "")

    def test_refused(self):
        token = os.path.join(self.folder, "token")
        with open(token, "w", encoding="ascii") as file:
            file.write("secret-1\n")
        with receiver.Receiver() as there:
            there.faults = [401]
            said = self.ship(f"otlp+http://127.0.0.1:{there.port}?token_file={token}", status=1)
            self.assertIn("status 401", said)
            self.ship(f"otlp+http://127.0.0.1:{there.port}?token_file={token}")
            self.check_profiles(there.requests)
            self.assertEqual({request.headers["authorization"] for request in there.requests}, {"Bearer secret-1"})

    def test_bad_urls(self):
        for url, words in [("otlp+http://127.0.0.1:1?signals=logs", "signals is profiles or traces"),
                           ("otlp+http://127.0.0.1:1?colour=red", "colour: unknown option"),
                           ("s3+http://127.0.0.1:1/b", "is no destination"), ("file:///tmp", "is no destination"),
                           ("gopher://127.0.0.1/", "otlp+http")]:
            self.assertIn(words, self.ship(url, status=2), url)

    def test_pyroscope(self):
        with receiver.Receiver() as there:
            there.faults = [None, 500]
            self.ship(f"pyroscope+http://127.0.0.1:{there.port}/push")
            self.assertEqual(there.refused, 1)
            found = [(request.query["name"], int(request.query["from"]), int(request.query["until"]), self.pprof(request))
                     for request in there.requests]
        labels = "{host=web-1,version=v1.2,"
        self.assertEqual([(start, end) for _, start, end, _ in found],
                         [(START, START + 10)] * 2 + [(START + 10, START + 20)] * 2 + [(START, START + 10)])
        self.assertEqual([name.partition("{")[0] for name, *_ in found], ["shop.cpu", "shop.wall"] * 2 + ["shop.latency"])
        for name, *_ in found:
            self.assertTrue(name.partition("{")[1] + name.partition("{")[2] >= labels and name.endswith("}"), name)
            self.assertIn("rack=r7", name)
        self.assertEqual([rows for *_, rows in found],
                         [{"server+0x20;server+0x10": 1500000, "server+0x20;serve": 3000000},
                          {"server+0x20;server+0x10": 1500000, "server+0x20;serve": 3000000,
                           "server+0x20;server+0x11;[parked]": 10000000},
                          {"server+0x20;server+0x10": 700000}, {"server+0x20;server+0x10": 700000},
                          {"[waiting]": 25000000}])
        self.assertEqual({(request.path, request.query["format"], request.headers["x-scope-orgid"])
                          for request in there.requests}, {("/push/ingest", "pprof", "blue")})

    def pprof(self, request):
        """{stack: nanoseconds} of the form's profile"""
        boundary = request.headers["content-type"].partition("boundary=")[2].encode()
        parts = request.body.split(b"--" + boundary)
        files = {part.partition(b'name="')[2].partition(b'"')[0].decode(): part.partition(b"\r\n\r\n")[2][:-2]
                 for part in parts[1:-1]}
        self.assertEqual((sorted(files), parts[-1]), (["profile", "sample_type_config"], b"--\r\n"))
        path = os.path.join(self.folder, "profile")
        with open(path, "wb") as file:
            file.write(gzip.decompress(files["profile"]))
        data = protoc_reader.decode(path, os.path.join(HERE, "pprof.proto"), "Profile")
        strings = [text.decode() for text in data["string_table"]]
        functions = {item["id"][0]: strings[item["name"][0]] for item in data["function"]}
        places = {item["id"][0]: functions[item["line"][0]["function_id"][0]] for item in data["location"]}
        rows = {";".join(places[place] for place in reversed(sample["location_id"])): sample["value"][1]
                for sample in data["sample"]}
        self.assertEqual(len(rows), len(data["sample"]))
        return rows

    def follow(self, folder, **popen):
        """Ship what comes to be in a folder: the command, and a receiver of its profiles of CPU time."""
        there = self.enterContext(receiver.Receiver())
        command = [GREENPROF, "ship", "--interval", "20ms", "--state", os.path.join(self.folder, "state"), folder]
        process = self.enterContext(subprocess.Popen(
            [*command, "--to", f"otlp+http://127.0.0.1:{there.port}?signals=profiles"], stdin=subprocess.DEVNULL, **popen))
        self.addCleanup(process.terminate)
        return there, process

    def starts(self, there):
        """Of the profiles of CPU time that have come, the moments."""
        return sorted(start for what, start, *_ in map(self.profile, list(there.requests)) if what == "cpu")

    def test_put_aside(self):
        """A capture that is renamed while it is followed, and another one in its place, as `run --rotate` does."""
        aside, whole = self.capture.replace(".", "-0001."), read(self.capture)
        half = whole.index(b"GPCK", len(whole) // 2)
        with open(self.capture, "wb") as file:
            file.write(whole[:half])
        there, process = self.follow(self.folder)
        files = f"/proc/{process.pid}/fd"
        until(lambda: any(os.path.realpath(os.path.join(files, name)) == self.capture for name in os.listdir(files)))
        os.rename(self.capture, aside)
        second = self.make(SCRIPT.replace("1700000000", "1700000100"))
        with open(self.capture, "wb") as file:
            file.write(second)
        with open(aside, "ab") as file:
            file.write(whole[half:])
        until(lambda: set(self.starts(there)) == {START, START + 10, START + 100, START + 110})

    def test_named_and_not_there_yet(self):
        """A folder that was named and is missing, by a typing error perhaps, is waited for, and that is said, once."""
        late, log = os.path.join(self.folder, "late"), os.path.join(self.folder, "log")
        with open(log, "wb") as stderr:
            there, _ = self.follow(late, stderr=stderr)
        until(lambda: read(log) != b"")
        os.mkdir(late)
        os.rename(self.capture, os.path.join(late, "api.greenprof"))
        until(lambda: there.requests)
        self.assertEqual(read(log).decode(), f"greenprof: {late}: No such file or directory; waiting for it\n")

    def test_several(self):
        """One destination that fails holds up no other."""
        with receiver.Receiver() as there, receiver.Receiver() as other:
            there.faults = [404]
            self.ship(f"otlp+http://127.0.0.1:{there.port}", f"otlp+http://127.0.0.1:{other.port}", status=1)
            self.check_profiles(other.requests)
            self.assertEqual(there.requests, [])


if __name__ == "__main__":
    if protoc_reader.PROTOC is None:
        print("SKIP: protoc is not installed (protobuf-compiler)")
        sys.exit(77)
    unittest.main()

# SPDX-License-Identifier: MIT
"""`greenprof mcp`: JSON-RPC of any kind, the tools, and that each answer is what the command prints.

usage: test_mcp.py GREENPROF MAKE_CAPTURE RECORDER.so WORK-DIRECTORY
"""
import json
import os
import shutil
import subprocess

from support import Command, GREENPROF, SCRIPT, main, run

CALLS = {  # tool: (its arguments, the command)
    "explain": ({}, ["explain", "--json"]),
    "report": ({"by": "coroutine", "rows": 2, "sort": "cpu"}, ["report", "--json", "--by", "coroutine", "-n", "2", "--sort", "cpu"]),
    "requests": ({}, ["report", "--json", "--by", "request"]),
    "callers": ({"callers": "."}, ["report", "--callers", "."]),
    "stacks": ({"clock": "wall", "from": "0"}, ["export", "--format", "folded", "--clock", "wall", "--from", "0"]),
    "info": ({}, ["info", "--json"]),
}


class Mcp(Command):
    def serve(self, *lines, arguments=None, status=0):
        """What a server answers to lines: bytes, or objects."""
        given = b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)
        result = subprocess.run([GREENPROF, "mcp", *(arguments or [self.capture])], input=given, capture_output=True, timeout=60)
        self.assertEqual((result.returncode, result.stderr.decode()), (status, ""))
        return [json.loads(line) for line in result.stdout.splitlines()]

    def ask(self, method, parameters=None, **options):
        answer, = self.serve({"jsonrpc": "2.0", "id": 7, "method": method, "params": parameters or {}}, **options)
        self.assertEqual((answer["jsonrpc"], answer["id"]), ("2.0", 7))
        return answer.get("result") or answer.get("error")

    def call(self, name, given=None, **options):
        return self.ask("tools/call", {"name": name, "arguments": given or {}}, **options)

    def tools(self, *arguments):
        return {tool["name"]: tool for tool in self.ask("tools/list", arguments=list(arguments))["tools"]}

    def test_initialize(self):
        for version in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"):
            said = self.ask("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}})
            self.assertEqual((said["protocolVersion"], said["capabilities"]), (version, {"tools": {}}))
            self.assertEqual(said["serverInfo"], dict(zip(("name", "version"), run("--version").stdout.split())))
        self.assertEqual(self.ask("initialize", {"protocolVersion": "1999-01-01"})["protocolVersion"], "2025-11-25")

    def test_tools_are_the_commands(self):
        tools = self.tools(self.capture)
        self.assertEqual(set(tools), {*CALLS, "coroutines", "traces", "trace"})
        for tool in tools.values():
            self.assertTrue(tool["annotations"]["readOnlyHint"])
            schema = tool["inputSchema"]
            self.assertEqual((schema["type"], schema["additionalProperties"], schema["properties"]["of"]["enum"]), ("object", False, [self.capture]))
            self.assertTrue(all(row["description"] and row["type"] in ("string", "integer", ["string", "array"]) for row in schema["properties"].values()))
        self.assertIn("victim-time", tools["report"]["inputSchema"]["properties"]["by"]["enum"])
        self.assertEqual(tools["trace"]["inputSchema"]["required"], ["id"])
        for name, (given, (command, *options)) in CALLS.items():
            said = self.call(name, given)
            self.assertEqual((said["isError"], said["content"][0]), (False, {"type": "text", "text": self.succeed(command, self.capture, *options)}), name)
        for name, command in (("traces", ("trace", "list", "--json")), ("coroutines", ("coroutines", "--json"))):  # this capture has none
            said = self.call(name)
            self.assertEqual((said["isError"], said["content"]), (True, [{"type": "text", "text": run(*command, self.capture).stderr}]))

    def test_two_captures(self):
        other = self.make("other.greenprof", SCRIPT.replace("950000", "990000"))
        tools = self.tools(self.capture, other)
        self.assertEqual(tools["diff"]["inputSchema"]["required"], ["base", "of"])
        said = self.call("diff", {"base": self.capture, "of": other, "per": "none"}, arguments=[self.capture, other])
        self.assertEqual(said["content"][0]["text"], self.succeed("diff", self.capture, other, "--per", "none", "--json"))
        self.assertIn("one of those", self.call("info", arguments=[self.capture, other])["message"])

    def test_only_what_was_named(self):
        other = self.make("other.greenprof", SCRIPT)
        for given in ({"of": other}, {"of": "/etc/passwd"}, {"of": ["x"]}, {"of": 3}):
            said = self.call("info", given)
            self.assertEqual((said["code"], "one of those" in said["message"]), (-32602, True))
        for name, given, words in (("report", {"output": "/tmp/x"}, "no such parameter"), ("report", {"rows": [1]}, "a text or a whole number"),
                                   ("report", {"": "x"}, "no such parameter"), ("trace", {"=show": "x", "id": "1"}, "no such parameter"),
                                   ("trace", {}, "id: must be a text"), ("start", {}, "no such tool"), ("diff", {}, "no such tool"), ("x" * 999, {}, "no such tool")):
            said = self.call(name, given)
            self.assertEqual(said["code"], -32602)
            self.assertIn(words, said["message"])
        for given in ({"by": "--json"}, {"rows": -1}, {"rows": "1 -o x"}, {"from": "x"}, {"restrict": "("}):
            said = self.call("report", given)
            self.assertTrue(said["isError"], given)
            self.assertIn("greenprof", said["content"][0]["text"])
        said = self.call("trace", {"id": "--output=" + self.path("written")})
        self.assertTrue(said["isError"])
        self.assertFalse(os.path.exists(self.path("written")))

    def test_whole_numbers_and_arrays(self):
        """3.0 is an integer to JSON Schema; an option that may be given several times is an array, too."""
        rows = self.tools(self.capture)["report"]["inputSchema"]["properties"]
        repeatable = [name for name, row in rows.items() if row["type"] == ["string", "array"]]
        self.assertEqual(set(repeatable), {"restrict", "trace", "coroutine", "name", "thread", "focus", "ignore"} & set(repeatable) | {"focus"})
        for given, options in (({"rows": 3.0}, ["-n", "3"]), ({"focus": [".", "server"]}, ["--focus", ".", "--focus", "server"]), ({"focus": "."}, ["--focus", "."]),
                               ({"focus": []}, [])):
            said = self.call("report", given)
            self.assertEqual((said["isError"], said["content"][0]["text"]), (False, self.succeed("report", self.capture, "--json", *options)), given)
        for given in ({"rows": 3.5}, {"rows": 1e300}, {"rows": [3]}, {"by": ["function"]}, {"focus": [["a"]]}):
            self.assertIn("a text or a whole number", self.call("report", given)["message"], given)
        self.assertIn("more than", self.call("report", {"focus": ["a"] * 100})["message"])

    def test_a_name_that_is_no_text(self):
        odd = os.path.join(os.fsencode(self.directory), b"odd\xff.greenprof")
        shutil.copy(self.capture, odd)
        name = self.tools(odd)["report"]["inputSchema"]["properties"]["of"]["enum"]
        self.assertEqual(name, [os.fsencode(self.directory).decode() + "/odd?.greenprof"])
        for given in ({}, {"of": name[0]}):
            self.assertFalse(self.call("info", given, arguments=[odd])["isError"])

    def test_what_is_no_request(self):
        lines = [b"{", b"", b"  ", b"\xff\xfe", b"nonsense", b'{"a":1,"a":2}', b"[" * 5000, b'"' + b"x" * 3_000_000 + b'"', b'"\0"']
        self.assertEqual([(line["error"]["code"], line["id"]) for line in self.serve(*lines)], [(-32700, None)] * 7)
        lines = [b"3", b"null", b'"x"', {}, {"method": "ping", "id": 1}, {"jsonrpc": "1.0", "method": "ping", "id": 1}, {"jsonrpc": "2.0", "id": 1, "method": 3},
                 {"jsonrpc": "2.0", "id": {}, "method": "ping"}, {"jsonrpc": "2.0", "id": None, "method": "ping"},
                 {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}, [], [{}] * 65]
        answers = self.serve(*lines)
        self.assertEqual({line["error"]["code"] for line in answers}, {-32600})
        self.assertEqual(self.ask("resources/list")["code"], -32601)
        self.assertEqual(self.ask("tools/call")["code"], -32602)
        self.assertEqual(self.ask("tools/call", {"name": "info", "arguments": 3})["code"], -32602)

    def test_order_of_messages(self):
        ping = {"jsonrpc": "2.0", "method": "ping"}
        answers = self.serve({"jsonrpc": "2.0", "method": "notifications/initialized"}, {**ping, "id": "a"}, {"jsonrpc": "2.0", "id": 9, "result": {}},
                             [{**ping, "id": 1}, ping, {**ping, "id": 2}], [ping], {**ping, "id": 3.5})
        self.assertEqual(answers, [{"jsonrpc": "2.0", "id": "a", "result": {}}, [{"jsonrpc": "2.0", "id": n, "result": {}} for n in (1, 2)],
                                   {"jsonrpc": "2.0", "id": 3.5, "result": {}}])
        self.assertEqual(self.serve(), [])

    def test_large_answers(self):
        rows = "".join(f"coro {i} 1 - 0x{i}000 0x1000 2 0 {'long' * 50}{i}\nledger {i} 0 1000 1 4000000\n" for i in range(100, 6000))
        large = self.make("large.greenprof", SCRIPT.replace("counters", rows + "counters"))
        said = self.call("report", {"by": "coroutine", "rows": 0}, arguments=[large])
        self.assertTrue(said["isError"], len(said["content"][0]["text"]))
        self.assertIn("larger than 1 MiB", said["content"][0]["text"])
        self.assertEqual(len(json.loads(self.call("report", {"by": "coroutine", "rows": 3}, arguments=[large])["content"][0]["text"])["rows"]), 3)

    def test_command_line(self):
        self.expect(2, "missing FILE", "mcp")
        self.expect(1, "No such file", "mcp", self.path("none"))
        self.expect(2, "standard input has the requests", "mcp", "-")
        self.expect(2, "--control is for a process", "mcp", "--control", self.capture)
        damaged = self.path("damaged")
        with open(damaged, "w", encoding="utf-8") as file:
            file.write("no capture")
        self.assertTrue(self.call("explain", arguments=[damaged])["isError"])

    def test_a_process_that_is_none(self):
        tools = self.tools("--control", "4194304")
        writes = {"start", "stop", "dump", "explain", "report", "requests", "callers", "stacks", "info", "traces", "trace"}  # what was recorded, into its capture
        self.assertEqual({name for name, tool in tools.items() if not tool["annotations"]["readOnlyHint"]}, writes)
        self.assertEqual(set(self.tools("4194304")) - set(self.tools(self.capture)), {"status"})
        for name in ("status", "report", "explain", "coroutines", "stop"):
            self.assertIn("4194304", self.call(name, arguments=["--control", "4194304"])["content"][0]["text"])


if __name__ == "__main__":
    main()

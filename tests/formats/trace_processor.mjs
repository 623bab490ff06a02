// Perfetto's own trace processor, compiled to WebAssembly: node trace_processor.mjs ASSETS TRACE SQL...
//
// Prints a JSON array with, for each query, an array of rows (objects; 64-bit integers as numbers). The engine expects to
// be a web worker that fetches its module by name.
import {readFileSync} from 'node:fs';
import path from 'node:path';
import {pathToFileURL} from 'node:url';
import vm from 'node:vm';

const [assets, trace, ...queries] = process.argv.slice(2);
const complaints = [];
console.warn = (line) => complaints.push(String(line)); // what the engine says besides

function actAsWorker() {
  globalThis.self = globalThis;
  globalThis.WorkerGlobalScope ??= function WorkerGlobalScope() {};
  Object.defineProperty(globalThis, 'location', {value: {href: pathToFileURL(assets).href + '/'}, configurable: true});
  globalThis.XMLHttpRequest = class {
    open(_method, name) { this.name = path.basename(String(name)); }
    send() { this.response = Uint8Array.from(readFileSync(path.join(assets, this.name))).buffer; }
  };
  // The package has the 32-bit module only: let the engine's look for 64-bit memory fail, a module that has nothing else.
  const Module = WebAssembly.Module;
  WebAssembly.Module = function (bytes) {
    if (bytes[8] === 5) throw new Error('no 64-bit memory');
    return new Module(bytes);
  };
  WebAssembly.Module.prototype = Module.prototype;
}

async function open() {
  actAsWorker();
  const glue = readFileSync(path.join(assets, 'engine_bundle.node.js'), 'utf8');
  vm.runInThisContext(glue, {filename: 'engine_bundle.js'});
  const {EngineBase} = await import(pathToFileURL(path.join(assets, 'engine.mjs')).href);
  const {port1, port2} = new MessageChannel();
  class Engine extends EngineBase {
    mode = 'WASM';
    id = 'test';
    rpcSendRequestBytes(data) { port2.postMessage(data); }
    [Symbol.dispose]() { port2.close(); }
  }
  const engine = new Engine();
  port2.onmessage = (message) => engine.onRpcResponseBytes(message.data);
  await new Promise((done) => setTimeout(done, Number(process.env.TRACE_PROCESSOR_START_MS ?? 500)));
  self.onmessage({data: port1});
  return engine;
}

function rowsOf(result) {
  const rows = [];
  for (const it = result.iter({}); it.valid(); it.next()) {
    const row = {};
    for (const column of result.columns()) {
      const value = it.get(column);
      row[column] = typeof value === 'bigint' ? Number(value) : value;
    }
    rows.push(row);
  }
  return rows;
}

const engine = await open();
await engine.parse(new Uint8Array(readFileSync(trace)));
await engine.notifyEof();
const results = [];
for (const query of queries) results.push(rowsOf(await engine.query(query)));
process.stdout.write(JSON.stringify(results) + '\n', () => process.exit(0));

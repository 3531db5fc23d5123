// Runs the engine of Perfetto's page, a web worker, in Node: node worker.js FOLDER < requests > replies
"use strict";
const fs = require("fs"), path = require("path"), vm = require("vm");
const folder = process.argv[2];
class XMLHttpRequest {
    open(method, url) { this.url = url; }
    send() { this.status = 200; this.response = fs.readFileSync(path.join(folder, path.basename(this.url))); }
}
console.log = console.warn = console.error;
// it asks whether it is in a page, a worker or Node
Object.assign(globalThis, {XMLHttpRequest, WorkerGlobalScope: Object, self: globalThis, location: {href: ""}});
process = undefined;
vm.runInThisContext(fs.readFileSync(path.join(folder, "engine_bundle.js")));
const port = {postMessage: reply => {
    for (let at = 0; at < reply.length;) at += fs.writeSync(1, reply, at);
}};
onmessage({data: port});
setImmediate(() => port.onmessage({data: new Uint8Array(fs.readFileSync(0))}));

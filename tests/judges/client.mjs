// Calls an MCP server with the TypeScript SDK's client and prints what came back, as one JSON object.
//
// node client.mjs '{"command": [program, …], "calls": [{"name": …, "arguments": …}, …]}' calls it over stdio, and with
// "url" and "headers" in place of "command" over HTTP. Started in the folder that has node_modules. A call that the
// client itself does not accept, such as a result that does not fit its output schema, is printed as {"error": message}.

import { createRequire } from "node:module";

const require = createRequire(`${process.cwd()}/`);
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");

const { command, url, headers, calls } = JSON.parse(process.argv[2]);
const transport = url
  ? new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } })
  : new StdioClientTransport({ command: command[0], args: command.slice(1) });
const client = new Client({ name: "judge", version: "1" });
await client.connect(transport);
const { tools } = await client.listTools(); // also gives the client the output schemas that it checks results with
const answers = [];
for (const call of calls) {
  answers.push(await client.callTool(call).catch((error) => ({ error: error.message })));
}
await client.close();
console.log(JSON.stringify({ server: client.getServerVersion(), tools, answers }));

// Calls all tools of a server over stdio, in two rounds over one list, and prints what came back.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [command, ...args] = process.argv.slice(2);
const transport = new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" });
const client = new Client({ name: "contracts", version: "1" });
await client.connect(transport);

const tools = [];
let cursor;
do {
  const page = await client.listTools({ cursor });
  tools.push(...page.tools);
  cursor = page.nextCursor;
} while (cursor);

function sample(schema) {
  if (schema.enum) return schema.enum[0];
  const kind = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  if (kind === "integer" || kind === "number") return Math.max(1, schema.minimum ?? 1);
  if (kind === "boolean") return true;
  if (kind === "array") return [];
  if (kind === "object") return {};
  return "R-1";
}

for (let round = 0; round < 2; round++) {
  for (const tool of tools) {
    const given = {};
    for (const name of tool.inputSchema.required ?? []) {
      given[name] = sample(tool.inputSchema.properties[name]);
    }
    try {
      const result = await client.callTool({ name: tool.name, arguments: given });
      console.log(JSON.stringify({ name: tool.name, result }));
    } catch (error) {
      console.log(JSON.stringify({ name: tool.name, error: String(error) }));
    }
  }
}
await client.close();

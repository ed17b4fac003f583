// Calls all tools of servers, and prints what came back: `client.mjs COMMAND...` of one over stdio;
// without a command of many, one after the other, whose messages come and go over this program's pipes.
import { createInterface } from "node:readline";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

// Whether the list is read again before a round of calls.
const ROUNDS = [true, false, false, true, true];

const say = (told) => process.stdout.write(JSON.stringify(told) + "\n");

function sample(schema) {
  if (schema.enum) return schema.enum[0];
  const kind = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  if (kind === "integer" || kind === "number") return Math.max(1, schema.minimum ?? 1);
  if (kind === "boolean") return true;
  if (kind === "array") return [];
  if (kind === "object") return {};
  return "R-1";
}

async function listed(client) {
  const tools = [];
  let cursor;
  do {
    const page = await client.listTools({ cursor });
    tools.push(...page.tools);
    cursor = page.nextCursor;
  } while (cursor);
  return tools;
}

async function met(transport) {
  const client = new Client({ name: "contracts", version: "1" });
  await client.connect(transport);
  const found = [];
  let tools;
  for (const again of ROUNDS) {
    tools = again ? await listed(client) : tools;
    for (const tool of tools) {
      const given = {};
      for (const name of tool.inputSchema.required ?? []) {
        given[name] = sample(tool.inputSchema.properties[name]);
      }
      try {
        const result = await client.callTool({ name: tool.name, arguments: given });
        found.push({ name: tool.name, result });
      } catch (error) {
        found.push({ name: tool.name, error: String(error) });
      }
    }
  }
  await client.close();
  return found;
}

// A connection whose messages are lines of this program's own pipes.
class Pipe {
  async start() {}
  async send(message) {
    say({ message });
  }
  async close() {
    this.onclose?.();
  }
}

const [command, ...args] = process.argv.slice(2);
if (command) {
  const transport = new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" });
  (await met(transport)).forEach(say);
} else {
  let pipe;
  for await (const line of createInterface({ input: process.stdin })) {
    const told = JSON.parse(line);
    if (told.message) {
      pipe.onmessage(told.message);
      continue;
    }
    pipe = new Pipe();
    met(pipe).then(
      (found) => say({ met: found }),
      (error) => say({ met: [{ name: "", error: String(error) }] }),
    );
  }
}

// An agent on the AI SDK: node agent.mjs MCP_URL TASK, with MODEL_API of "openai" or "anthropic".
import { createAnthropic } from "@ai-sdk/anthropic";
import { createMCPClient } from "@ai-sdk/mcp";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { isStepCount, jsonSchema, streamText, tool } from "ai";
import { execFileSync } from "node:child_process";

const [url, task] = process.argv.slice(2);
const { MODEL_API, MODEL_URL: baseURL, TOOLSHIFT_SYSTEM: system } = process.env;
const at = { name: "proxy", baseURL, apiKey: "dummy" };
const model = (MODEL_API === "anthropic" ? createAnthropic(at) : createOpenAICompatible(at))(
  "scripted",
);

const shell = tool({
  description: "Runs a command in a shell and gives what it printed.",
  inputSchema: jsonSchema({
    type: "object",
    properties: { command: { type: "string", description: "The command." } },
    required: ["command"],
  }),
  execute: ({ command }) => execFileSync("sh", ["-c", command], { encoding: "utf8" }),
});

const client = await createMCPClient({ transport: { type: "http", url } });
const { text } = streamText({
  model,
  system,
  prompt: task,
  tools: { ...(await client.tools()), shell },
  stopWhen: isStepCount(50),
});
console.log(await text);
await client.close();

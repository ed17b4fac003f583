// An agent on Mastra: node mastra.ts MCP_URL TASK
import { Agent } from "@mastra/core/agent";
import { MCPClient } from "@mastra/mcp";
import { end, routed, STEPS } from "./model.ts";

const [url, task] = process.argv.slice(2);

try {
  // A server behind a proxy is started when the first client comes, which may take its time.
  const scene = { url: new URL(url), connectTimeout: 60_000 };
  const mcp = new MCPClient({ servers: { scene } });
  const agent = new Agent({
    id: "clerk",
    name: "clerk",
    instructions: process.env.TOOLSHIFT_SYSTEM ?? "Use the tools to do what the user asks.",
    model: routed,
  });
  // As toolsets the tools keep their names; by listTools() the server's would stand before them.
  const { toolsets, errors } = await mcp.listToolsetsWithErrors();
  if (errors.scene) throw new Error(errors.scene); // it would go on without tools
  const { text } = await agent.generate(task, { toolsets, maxSteps: STEPS });
  await mcp.disconnect();
  console.log(text);
} catch (fault) {
  end(fault);
}

// An agent on the AI SDK: node ai-sdk.ts MCP_URL TASK
import { createMCPClient } from "@ai-sdk/mcp";
import { generateText, isStepCount } from "ai";
import { end, model, STEPS } from "./model.ts";

const [url, task] = process.argv.slice(2);

try {
  const client = await createMCPClient({ transport: { type: "http", url } });
  const { text } = await generateText({
    model,
    tools: await client.tools(),
    prompt: task,
    system: process.env.TOOLSHIFT_SYSTEM,
    stopWhen: isStepCount(STEPS),
  });
  await client.close();
  console.log(text);
} catch (fault) {
  end(fault);
}

// The model of both agents, at an address that speaks OpenAI's chat completions.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";

const name = process.env.MODEL ?? "gpt-4.1-mini";
const baseURL = process.env.OPENAI_BASE_URL ?? "https://api.openai.com/v1";
const apiKey = process.env.OPENAI_API_KEY;

/** For the AI SDK. */
export const model = createOpenAICompatible({ name: "model", baseURL, apiKey })(name);

/** For Mastra, whose router of models takes an address as well. */
export const routed = { id: `model/${name}`, url: baseURL, apiKey } as const;

/** Steps that an agent may take; the budget of an episode ends it before. */
export const STEPS = 50;

/**
 * Ends with exit code 75 where the model is out of order, which is no loss of the agent; anything
 * else that is thrown is its own failure.
 */
export function end(fault: unknown): never {
  console.error(fault);
  process.exit(isOutage(fault) ? 75 : 1);
}

function isOutage(fault: unknown): boolean {
  for (let cause = fault as any, depth = 0; cause && depth < 10; depth++) {
    if (cause.isRetryable === true) return true; // as the AI SDK marks 408, 409, 429, 5xx
    cause = cause.lastError ?? cause.cause;
  }
  return false;
}

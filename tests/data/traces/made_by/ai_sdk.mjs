// Writes the spans of the Vercel AI SDK as OTLP JSON: node ai_sdk.mjs OUT, in a folder with
// `npm i ai@5 zod@3 @opentelemetry/sdk-trace-node @opentelemetry/otlp-transformer`, or with
// `npm i ai@7 @ai-sdk/otel zod ...` for the spans of version 7.
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import path from 'node:path';

const require = createRequire(path.join(process.cwd(), 'index.js'));
const use = (name) => import(pathToFileURL(require.resolve(name)).href);
const { generateText, stepCountIs, isStepCount, jsonSchema, tool, ...ai } = await use('ai');
const { NodeTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } = await use(
  '@opentelemetry/sdk-trace-node');
const { JsonTraceSerializer } = await use('@opentelemetry/otlp-transformer');

const ORDERS = {
  'O-1701': { status: 'delivered', buyer: 'mara.lind@shop-mail.net', total: 49.5 },
  'O-1702': { status: 'damaged', buyer: 'jo.berg@shop-mail.net', total: 12.0 },
  'O-1703': { status: 'lost', buyer: 'kim.oda@shop-mail.net', total: 7.25 },
};
const REQUESTS = [
  'What is the status of order O-1701?', 'Please refund order O-1702 to its buyer.',
  'Please refund order O-1703 to its buyer.', 'What is the status of order O-1702?',
  'Thanks, that was all.',
];

const exporter = new InMemorySpanExporter();
const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
provider.register();
const seven = Boolean(ai.registerTelemetry);
if (seven) {
  const { OpenTelemetry } = await use('@ai-sdk/otel');
  ai.registerTelemetry(new OpenTelemetry());
}

const text = (message) => typeof message.content === 'string' ? message.content
  : message.content.map((part) => part.text ?? '').join('');
function reply(prompt) {
  const request = text(prompt.find((message) => message.role === 'user'));
  const results = prompt.filter((message) => message.role === 'tool')
    .flatMap((message) => message.content.map((part) => part.output.value));
  const order = request.match(/O-\d+/)?.[0];
  const calls = (toolName, input, toolCallId) => [
    { type: 'tool-call', toolCallId, toolName, input: JSON.stringify(input) }];
  const says = (said) => [{ type: 'text', text: said }];
  if (!order) return says('You are welcome.');
  if (!results.length) return calls('get_order', { order_id: order }, 'call_1');
  if (!request.includes('refund')) return says(`Order ${order} is ${results[0].status}.`);
  if (results.length === 1)
    return calls('refund_order', { order_id: order, email: results[0].buyer }, 'call_2');
  return says(results[1].success ? `The refund is ${results[1].refund}.`
    : 'It cannot be refunded.');
}
const count = (n) => seven ? { total: n, noCache: n, cacheRead: 0, cacheWrite: 0 } : n;
const model = {
  specificationVersion: seven ? 'v4' : 'v2', provider: 'scripted', modelId: 'gpt-5',
  supportedUrls: {},
  doGenerate: async ({ prompt }) => {
    const content = reply(prompt);
    const calls = content[0].type === 'tool-call';
    const reason = calls ? 'tool-calls' : 'stop';
    return {
      content, finishReason: seven ? { unified: reason, raw: reason } : reason, warnings: [],
      usage: seven ? { inputTokens: count(50), outputTokens: { total: 9, text: 9, reasoning: 0 } }
        : { inputTokens: 50, outputTokens: 9, totalTokens: 59 },
    };
  },
};
const order_id = { type: 'string', description: 'as O-1700' };
const email = { type: 'string', description: 'of the buyer' };
const of = (properties) => jsonSchema({
  type: 'object', properties, required: Object.keys(properties) });
const tools = {
  get_order: tool({
    description: 'Looks an order up.', inputSchema: of({ order_id }),
    execute: async ({ order_id }) => ({ order_id, ...ORDERS[order_id] }),
  }),
  refund_order: tool({
    description: 'Pays the price of an order back to its buyer.',
    inputSchema: of({ order_id, email }),
    execute: async ({ order_id }) => order_id === 'O-1703'
      ? { success: false, reason: 'a lost order is paid by the carrier' }
      : { success: true, refund: `RF-${order_id.slice(2)}`, error: null },
  }),
};
for (const prompt of REQUESTS)
  await generateText({
    model, tools, prompt, stopWhen: (stepCountIs ?? isStepCount)(5),
    ...(seven ? { instructions: 'You work for a small shop.', telemetry: { isEnabled: true } }
      : { system: 'You work for a small shop.', experimental_telemetry: { isEnabled: true } }),
  });
await provider.forceFlush();
writeFileSync(process.argv[2], new TextDecoder().decode(
  JsonTraceSerializer.serializeRequest(exporter.getFinishedSpans())) + '\n');

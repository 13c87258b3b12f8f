// @ai-sdk/openai-compatible under the AI SDK, as a program uses them against whimbrel serve.
import assert from "node:assert/strict";
import test from "node:test";

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import {
  APICallError,
  Output,
  RetryError,
  generateText,
  isStepCount,
  jsonSchema,
  streamText,
  tool,
} from "ai";

import {
  assertCancelled,
  assertFits,
  question,
  served,
  triedAgain,
  whileOccupied,
  wrongKey,
} from "./served.mjs";

function modelOf({ url = served.url, key = served.key, name = served.model } = {}) {
  const provider = createOpenAICompatible({
    name: "whimbrel",
    baseURL: url + "/v1",
    apiKey: key,
    includeUsage: true,
    supportsStructuredOutputs: true,
  });
  return provider(name);
}

const plain = { model: modelOf(), prompt: question, temperature: 0, maxOutputTokens: 60, maxRetries: 0 };
const narrow = modelOf({ url: served.narrowUrl });
const singing = (execute) =>
  tool({ description: "Sings", inputSchema: jsonSchema(served.schema), execute });

async function collect(stream) {
  const items = [];
  for await (const item of stream) items.push(item);
  return items;
}

test("an answer with its usage", async () => {
  const answer = await generateText(plain);
  assert.ok(answer.text);
  assert.equal(answer.finishReason, "stop");
  const usage = answer.usage;
  assert.ok(usage.outputTokens > 0);
  assert.equal(usage.totalTokens, usage.inputTokens + usage.outputTokens);
});

test("a stream is the answer", async () => {
  const whole = await generateText(plain);
  const stream = streamText(plain);
  assert.equal((await collect(stream.textStream)).join(""), whole.text);
  assert.equal((await stream.usage).outputTokens, whole.usage.outputTokens);
  assert.equal(await stream.finishReason, "stop");
});

test("a picture and a second turn", async () => {
  const first = {
    role: "user",
    content: [
      { type: "file", mediaType: "image/png", data: served.picture },
      { type: "text", text: "Describe this image." },
    ],
  };
  const answer = await generateText({ ...plain, prompt: undefined, messages: [first] });
  assert.ok(answer.text);
  const next = { role: "user", content: "Which colours are there?" };
  const messages = [first, ...answer.response.messages, next];
  const again = await generateText({ ...plain, prompt: undefined, messages });
  assert.ok(again.usage.inputTokens > answer.usage.inputTokens);
  assert.ok(again.usage.inputTokenDetails.cacheReadTokens > 30);
});

test("a tool is called", async () => {
  const tools = { paint: singing(), sing: singing() };
  for (const toolChoice of ["required", { type: "tool", toolName: "sing" }]) {
    const { toolCalls, finishReason } = await generateText({
      ...plain,
      tools,
      toolChoice,
      maxOutputTokens: 400,
    });
    assert.equal(finishReason, "tool-calls");
    assert.ok(toolChoice === "required" || toolCalls[0].toolName === "sing");
    assertFits(toolCalls[0].input);
  }
});

test("a tool is called in a stream, runs, and its result goes back", async () => {
  const seen = [];
  const tools = { sing: singing((value) => (seen.push(value), "Sung.")) };
  const stream = streamText({
    ...plain,
    tools,
    maxOutputTokens: 400,
    stopWhen: isStepCount(2),
    prepareStep: ({ stepNumber }) => ({ toolChoice: stepNumber === 0 ? "required" : "none" }),
  });
  const kinds = (await collect(stream.fullStream)).map((part) => part.type);
  assert.ok(kinds.includes("tool-input-delta"));
  assert.equal(seen.length, 1);
  assertFits(seen[0]);
  const steps = await stream.steps;
  assert.deepEqual(steps.map((step) => step.toolCalls.length), [1, 0]);
});

test("a schema", async () => {
  const output = Output.object({ schema: jsonSchema(served.schema) });
  const answer = await generateText({ ...plain, output, maxOutputTokens: 400 });
  assertFits(answer.output);
});

test("errors have their status and code", async () => {
  const fails = async (fields) => {
    const error = await generateText({ ...plain, ...fields }).then(assert.fail, (caught) => caught);
    assert.ok(APICallError.isInstance(error), String(error));
    return error;
  };
  const bad = await fails({ providerOptions: { whimbrel: { min_p: "low" } } });
  assert.deepEqual([bad.statusCode, bad.data.error.param], [400, "min_p"]);
  assert.ok(!bad.isRetryable);
  assert.equal((await fails({ model: modelOf({ key: wrongKey }) })).statusCode, 401);
  const other = await fails({ model: modelOf({ name: "another" }) });
  assert.deepEqual([other.statusCode, other.data.error.code], [404, "model_not_found"]);
  const long = await fails({ prompt: served.tooLong });
  assert.deepEqual([long.statusCode, long.data.error.code], [400, "context_length_exceeded"]);
  const full = await whileOccupied(() => fails({ model: narrow }));
  assert.deepEqual([full.statusCode, full.isRetryable], [429, true]);
});

test("it tries again by itself", async () => {
  const answer = await triedAgain(() => generateText({ ...plain, model: narrow, maxRetries: 5 }));
  assert.ok(answer.text);
});

test("it says so where all tries are refused", async () => {
  await whileOccupied(async () => {
    const error = await generateText({ ...plain, model: narrow, maxRetries: 1 }).then(
      assert.fail,
      (caught) => caught,
    );
    assert.ok(RetryError.isInstance(error), String(error));
    assert.equal(error.errors.length, 2);
  });
});

test("a stream that is aborted", async () => {
  const leaving = new AbortController();
  const stream = streamText({
    ...plain,
    maxOutputTokens: served.longAnswer,
    providerOptions: { whimbrel: { logit_bias: served.neverEnding } },
    abortSignal: leaving.signal,
  });
  const reader = stream.textStream.getReader();
  assert.ok((await reader.read()).value);
  await assertCancelled(() => leaving.abort());
});

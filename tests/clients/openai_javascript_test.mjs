// The openai package of npm, as a program uses it against whimbrel serve.
import assert from "node:assert/strict";
import test from "node:test";

import OpenAI from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import { z } from "zod";

import {
  assertCancelled,
  assertFits,
  question,
  served,
  triedAgain,
  whileOccupied,
  wrongKey,
} from "./served.mjs";

function clientOf(settings = {}) {
  const baseURL = served.url + "/v1";
  return new OpenAI({ baseURL, apiKey: served.key, maxRetries: 0, ...settings });
}

const narrow = { baseURL: served.narrowUrl + "/v1" };
const client = clientOf();
const asking = (content) => [{ role: "user", content }];
const requestOf = (fields = {}) => ({
  model: served.model,
  messages: asking(question),
  temperature: 0,
  max_tokens: 60,
  ...fields,
});
const chat = (fields, from = client) => from.chat.completions.create(requestOf(fields));
const tool = (name) => ({ type: "function", function: { name, parameters: served.schema } });
const tools = [tool("paint"), tool("sing")];
const sing = { type: "function", function: { name: "sing" } };

async function collect(stream) {
  const items = [];
  for await (const item of stream) items.push(item);
  return items;
}

const textOf = (chunks) => chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("");

test("an answer with its usage", async () => {
  const answer = await chat();
  assert.ok(answer.choices[0].message.content);
  assert.equal(answer.model, served.model);
  const usage = answer.usage;
  assert.equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens);
  assert.ok(answer._request_id);
});

test("a stream is the answer", async () => {
  const whole = await chat();
  const stream = await chat({ stream: true, stream_options: { include_usage: true } });
  const chunks = await collect(stream);
  assert.equal(textOf(chunks), whole.choices[0].message.content);
  assert.equal(chunks.at(-1).usage.completion_tokens, whole.usage.completion_tokens);
});

test("a picture and a second turn", async () => {
  const first = {
    role: "user",
    content: [
      { type: "image_url", image_url: { url: served.picture } },
      { type: "text", text: "Describe this image." },
    ],
  };
  const answer = await chat({ messages: [first] });
  assert.ok(answer.choices[0].message.content);
  const next = { role: "user", content: "Which colours are there?" };
  const again = await chat({ messages: [first, answer.choices[0].message, next] });
  assert.ok(again.usage.prompt_tokens > answer.usage.prompt_tokens);
  assert.ok(again.usage.prompt_tokens_details.cached_tokens > 30);
});

test("a tool is called and answered", async () => {
  const any = await chat({ tools, tool_choice: "required", max_tokens: 400 });
  assertFits(JSON.parse(any.choices[0].message.tool_calls[0].function.arguments));
  const answer = await chat({ tools, tool_choice: sing, max_tokens: 400 });
  assert.equal(answer.choices[0].finish_reason, "tool_calls");
  const message = answer.choices[0].message;
  const [call] = message.tool_calls;
  assert.equal(call.function.name, "sing");
  assertFits(JSON.parse(call.function.arguments));
  const result = { role: "tool", tool_call_id: call.id, content: "Sung." };
  const messages = [...asking(question), message, result];
  const last = await chat({ messages, tools, tool_choice: "none" });
  assert.ok(last.usage.prompt_tokens > (await chat()).usage.prompt_tokens);
  assert.equal(last.choices[0].message.tool_calls, undefined);
});

test("a call in a stream", async () => {
  const fields = { tools, tool_choice: sing, max_tokens: 400 };
  const whole = await chat(fields);
  const final = await client.chat.completions.stream(requestOf(fields)).finalChatCompletion();
  const [call] = final.choices[0].message.tool_calls;
  const [expected] = whole.choices[0].message.tool_calls;
  assert.equal(call.function.name, "sing");
  assert.equal(call.function.arguments, expected.function.arguments);
});

test("a tool that the package runs by itself", async () => {
  const seen = [];
  const runnable = {
    type: "function",
    function: {
      name: "sing",
      parameters: served.schema,
      parse: JSON.parse,
      function: (value) => (seen.push(value), "Sung."),
    },
  };
  const runner = client.chat.completions.runTools(
    requestOf({ tools: [runnable], tool_choice: sing, max_tokens: 400 }),
  );
  await runner.done();
  assert.equal(seen.length, 1); // it goes no further where one tool is chosen
  assertFits(seen[0]);
});

test("a schema by hand and by class", async () => {
  const json_schema = { name: "wall", schema: served.schema, strict: true };
  const answer = await chat({ response_format: { type: "json_schema", json_schema }, max_tokens: 400 });
  assertFits(JSON.parse(answer.choices[0].message.content));
  const Wall = z.object({ colour: z.enum(["red", "blue"]), count: z.number().int().min(0).max(9) });
  const parsed = await client.chat.completions.parse(
    requestOf({ response_format: zodResponseFormat(Wall, "wall"), max_tokens: 400 }),
  );
  assertFits(parsed.choices[0].message.parsed);
});

test("a response, whole and in a stream", async () => {
  const request = { model: served.model, input: question, temperature: 0, max_output_tokens: 60 };
  const whole = await client.responses.create(request);
  assert.equal(whole.output_text, (await chat()).choices[0].message.content);
  const events = await collect(await client.responses.create({ ...request, stream: true }));
  assert.equal(events.at(-1).type, "response.completed");
  const deltas = events.filter((event) => event.type === "response.output_text.delta");
  assert.equal(deltas.map((event) => event.delta).join(""), whole.output_text);
});

test("models", async () => {
  const ids = (await collect(await client.models.list())).map((model) => model.id);
  assert.deepEqual(ids, [served.model]);
});

test("errors have their classes", async () => {
  const fails = async (type, fields, settings) => {
    const error = await chat(fields, clientOf(settings)).then(assert.fail, (caught) => caught);
    assert.ok(error instanceof type, String(error));
    return error;
  };
  const bad = await fails(OpenAI.BadRequestError, { temperature: "hot" });
  assert.deepEqual([bad.status, bad.param, bad.type], [400, "temperature", "invalid_request_error"]);
  assert.ok(bad.requestID);
  await fails(OpenAI.AuthenticationError, {}, { apiKey: wrongKey });
  const other = await fails(OpenAI.NotFoundError, { model: "another" });
  assert.equal(other.code, "model_not_found");
  const long = await fails(OpenAI.BadRequestError, { messages: asking(served.tooLong) });
  assert.equal(long.code, "context_length_exceeded");
  await whileOccupied(() => fails(OpenAI.RateLimitError, {}, narrow));
});

test("it tries again by itself", async () => {
  const answer = await triedAgain(() => chat({}, clientOf({ ...narrow, maxRetries: 5 })));
  assert.ok(answer.choices[0].message.content);
});

test("a stream that is aborted", async () => {
  const fields = { stream: true, logit_bias: served.neverEnding, max_tokens: served.longAnswer };
  const stream = await chat(fields);
  await assertCancelled(() => stream.controller.abort());
});

test("a stream that is read no further", async () => {
  const fields = { stream: true, logit_bias: served.neverEnding, max_tokens: served.longAnswer };
  const stream = await chat(fields);
  await assertCancelled(async () => {
    for await (const chunk of stream) return chunk;
  });
});

// What the scripts of JavaScript clients share: the servers that run_javascript.py started.
import assert from "node:assert/strict";

export const served = JSON.parse(process.env.WHIMBREL_SERVED);
export const wrongKey = "another-key";
export const question = "What is 53 minus 44?";
const headers = { "Content-Type": "application/json", "x-api-key": served.key };

async function get(url, path) {
  const answer = await fetch(url + path, { headers });
  assert.equal(answer.status, 200);
  return answer.text();
}

const pause = () => new Promise((resolve) => setTimeout(resolve, 10));

/** What /slots says once that is as wanted. */
export async function waitFor(url, wanted) {
  let slots;
  for (let i = 0; i < 2000; ++i) {
    slots = JSON.parse(await get(url, "/slots"));
    if (wanted(slots)) return slots;
    await pause();
  }
  assert.fail(JSON.stringify(slots));
}

const isIdle = (slots) => slots.running + slots.queued === 0;

/** Calls `leave` while one request is computed, and sees that request end by it. */
export async function assertCancelled(leave) {
  const before = await waitFor(served.url, (slots) => slots.running === 1);
  await leave();
  const after = await waitFor(served.url, isIdle);
  assert.equal(after.requests_cancelled - before.requests_cancelled, 1);
}

/** A chat of the narrow server that goes on until it is aborted, or for many seconds. */
async function openStream(signal) {
  const body = JSON.stringify({
    messages: [{ role: "user", content: "Count." }],
    stream: true,
    max_tokens: 16000,
    logit_bias: served.neverEnding,
  });
  const url = served.narrowUrl + "/v1/chat/completions";
  const answer = await fetch(url, { method: "POST", headers, body, signal });
  assert.equal(answer.status, 200);
}

/** Calls `act` while the narrow server has no room; `act` gets what makes room again. */
export async function whileOccupied(act) {
  const leaving = new AbortController();
  try {
    await openStream(leaving.signal);
    await waitFor(served.narrowUrl, (slots) => slots.running === 1);
    await openStream(leaving.signal);
    await waitFor(served.narrowUrl, (slots) => slots.queued === 1);
    return await act(() => leaving.abort());
  } finally {
    leaving.abort();
    await waitFor(served.narrowUrl, isIdle);
  }
}

/** How many requests the narrow server refused for want of room. */
async function refusals() {
  const lines = (await get(served.narrowUrl, "/metrics")).split("\n");
  const counts = lines.filter((line) => line.includes('status="429"'));
  return counts.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
}

/** What `ask` gets of a server that has no room until it has refused it once. */
export async function triedAgain(ask) {
  const refused = await refusals();
  const value = await whileOccupied(async (makeRoom) => {
    let done = false;
    const answer = ask().finally(() => (done = true));
    answer.catch(() => {}); // until it is awaited below
    while (!done && (await refusals()) === refused) await pause();
    makeRoom();
    return answer;
  });
  assert.ok((await refusals()) > refused);
  return value;
}

/** Whether a value fits served.schema. */
export function assertFits(value) {
  assert.deepEqual(Object.keys(value).sort(), ["colour", "count"]);
  assert.ok(["red", "blue"].includes(value.colour));
  assert.ok(Number.isInteger(value.count) && value.count >= 0 && value.count <= 9);
}

// Asks a running `whimbrel serve` about a picture, with OpenAI's client; words come as they are made.
// npm install openai; node examples/openai_chat.mjs photo.png
import { readFile } from "node:fs/promises";

import OpenAI from "openai";

const client = new OpenAI({
  baseURL: process.env.OPENAI_BASE_URL ?? "http://127.0.0.1:8080/v1",
  apiKey: process.env.OPENAI_API_KEY ?? "none",
});
const picture = await readFile(process.argv[2], "base64");
const models = await client.models.list();
const stream = await client.chat.completions.create({
  model: models.data[0].id,
  messages: [
    {
      role: "user",
      content: [
        { type: "image_url", image_url: { url: `data:image/png;base64,${picture}` } },
        { type: "text", text: "Describe this image." },
      ],
    },
  ],
  stream: true,
});
for await (const chunk of stream) {
  process.stdout.write(chunk.choices[0]?.delta.content ?? "");
}
console.log();

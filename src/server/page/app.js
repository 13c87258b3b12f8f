"use strict";
// The page talks to the server that it came from and to nobody else. Whatever the model says
// becomes text nodes; no HTML is made of it.

const PICTURE_TYPES = ["image/png", "image/jpeg", "image/webp", "image/gif"];
const SVG = "http://www.w3.org/2000/svg";

const at = (id) => document.getElementById(id);

/** The conversation as the server takes it. */
let messages = [];
/** Pictures that the next message takes along, as data: URLs. */
let pictures = [];
/** Of the answer that is coming, or null. */
let running = null;
/** What /props said. */
let props = {};

// --- elements

function element(tag, className, ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

function picture(url, alternative) {
  const image = document.createElement("img");
  image.src = url;
  image.alt = alternative;
  return image;
}

function say(text) {
  at("status").textContent = text;
}

/** Shows the end of the conversation, unless someone has scrolled up to read. */
function follow(change) {
  const log = at("log");
  const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
  change();
  if (atEnd) log.scrollTop = log.scrollHeight;
}

// --- the server

function headers() {
  const key = at("key").value;
  return key ? { Authorization: `Bearer ${key}` } : {};
}

/** The server's own words for what went wrong. */
async function failureOf(response) {
  const text = await response.text();
  try {
    return JSON.parse(text).error.message;
  } catch {
    return `the server answered ${response.status}`;
  }
}

async function tell(path) {
  const response = await fetch(path, { headers: headers() });
  if (response.ok) return response.json();
  if (response.status === 401) {
    at("settings").open = true;
    at("key").focus();
  }
  throw Object.assign(new Error(await failureOf(response)), { status: response.status });
}

/** Names the model, once it is loaded. */
async function greet() {
  try {
    props = await tell("props");
    at("model").textContent = props.model;
    say("");
  } catch (error) {
    say(error.message);
    if (error.status === 503) setTimeout(greet, 1000);
  }
}

/** The data of a stream's events, one by one. */
async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const frames = (rest + value).split("\n\n");
    rest = frames.pop();
    for (const frame of frames) {
      if (frame.startsWith("data: ")) yield frame.slice("data: ".length);
    }
  }
}

function requestOf() {
  const request = {
    messages: at("system").value ? [{ role: "system", content: at("system").value }, ...messages] : messages,
    stream: true,
    stream_options: { include_usage: true },
    whimbrel: { details: true },
  };
  if (at("temperature").value !== "") request.temperature = Number(at("temperature").value);
  if (at("max-tokens").value !== "") request.max_tokens = Number(at("max-tokens").value);
  return request;
}

/** Asks, and hands each chunk of the answer to `take`. */
async function stream(signal, take) {
  const response = await fetch("v1/chat/completions", {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers() },
    body: JSON.stringify(requestOf()),
    signal,
  });
  if (!response.ok) throw new Error(await failureOf(response));
  let ended = false;
  for await (const data of eventsOf(response)) {
    if (data === "[DONE]") {
      ended = true;
      continue;
    }
    const chunk = JSON.parse(data);
    if (chunk.error) throw new Error(chunk.error.message);
    take(chunk);
  }
  if (!ended) throw new Error("the answer broke off");
}

// --- boxes

/** The first picture of the conversation. */
function pictureAsked() {
  const parts = messages.flatMap(({ content }) => (Array.isArray(content) ? content : []));
  return parts.find(({ type }) => type === "image_url").image_url.url;
}

function shape(name, attributes, label) {
  const made = document.createElementNS(SVG, name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  const title = document.createElementNS(SVG, "title");
  title.textContent = label;
  made.append(title);
  return made;
}

function mark({ kind, label, pixels: [x1, y1, x2, y2] }) {
  // A line of no length has round ends, whatever the picture's scale.
  if (kind === "point") return shape("path", { d: `M ${x1} ${y1} h 0` }, label);
  const sides = { x: Math.min(x1, x2), y: Math.min(y1, y2), width: Math.abs(x2 - x1), height: Math.abs(y2 - y1) };
  return shape("rect", sides, label);
}

/** The picture with its boxes, and the boxes in words. */
function drawn(url, [width, height], boxes) {
  const drawing = document.createElementNS(SVG, "svg");
  drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
  drawing.setAttribute("preserveAspectRatio", "none");
  drawing.setAttribute("aria-hidden", "true");
  drawing.append(...boxes.map(mark));
  const list = element("ul", "boxes");
  for (const { kind, label, pixels } of boxes) {
    list.append(element("li", "", `${label || kind}: ${pixels.join(", ")}`));
  }
  const caption = element("figcaption", "figures", "Boxes in pixels of the picture (left, top, right, bottom)", list);
  return element("figure", "", element("div", "drawn", picture(url, "The picture, with boxes"), drawing), caption);
}

/** The server finds the boxes; it can't say where they lie if it can't say on which picture. */
function showBoxes(article, { boxes, media }) {
  if (boxes.length === 0 || media.length === 0) return;
  if (boxes[0].pixels === null) {
    const why = media.length > 1 ? "the conversation has several pictures" : "the model's convention isn't known";
    article.append(element("p", "figures", `${boxes.length} boxes, not drawn: ${why}`));
    return;
  }
  article.append(drawn(pictureAsked(), media[0].size, boxes));
}

// --- the conversation

/** An answer on the page, which grows chunk by chunk. */
class Answer {
  constructor() {
    this.text = "";
    this.thinking = "";
    this.details = { boxes: [], media: [] };
    this.body = element("p", "text");
    this.article = element("article", "assistant", this.body);
    this.article.setAttribute("aria-busy", "true");
    at("log").append(this.article);
  }

  take(chunk) {
    const delta = chunk.choices[0]?.delta ?? {};
    if (delta.reasoning_content) this.think(delta.reasoning_content);
    if (delta.content) this.write(delta.content);
    if (chunk.timings) this.timings = chunk.timings;
    if (chunk.whimbrel) this.details = chunk.whimbrel;
  }

  write(text) {
    this.text += text;
    this.body.append(text);
  }

  think(text) {
    if (!this.thinking) {
      this.thoughts = element("p", "");
      this.body.before(element("details", "thinking", element("summary", "", "Thinking"), this.thoughts));
    }
    this.thinking += text;
    this.thoughts.append(text);
  }

  end(failure) {
    this.article.removeAttribute("aria-busy");
    if (failure) this.article.append(element("p", "error", failure));
    if (this.timings) this.article.append(element("p", "figures timings", inWords(this.timings)));
    showBoxes(this.article, this.details);
  }
}

function inWords(timings) {
  const seconds = (ms) => `${(ms / 1000).toFixed(2)} s`;
  return [
    `${timings.predicted_n} tokens in ${seconds(timings.predicted_ms)}, ${timings.predicted_per_second.toFixed(1)} tokens/s`,
    `prompt ${timings.prompt_n} tokens in ${seconds(timings.prompt_ms)} (pictures ${seconds(timings.tower_ms)}), ${timings.cache_n} from cache`,
    `waited ${seconds(timings.queue_ms)}`,
  ].join(" · ");
}

function showQuestion(text, urls) {
  const article = element("article", "user");
  urls.forEach((url, i) => article.append(picture(url, `Picture ${i + 1}`)));
  article.append(element("p", "text", text));
  at("log").append(article);
  at("log").scrollTop = at("log").scrollHeight;
}

function contentOf(text, urls) {
  if (urls.length === 0) return text;
  const images = urls.map((url) => ({ type: "image_url", image_url: { url } }));
  return text ? [...images, { type: "text", text }] : images;
}

function setRunning(controller) {
  running = controller;
  at("send").disabled = controller !== null;
  at("clear").disabled = controller !== null;
  at("stop").hidden = controller === null;
}

/** What was asked and got no answer at all is taken back, for the next question to be sound. */
function remember(answer) {
  if (answer.text || answer.thinking) {
    messages.push({ role: "assistant", content: answer.text });
  } else {
    messages.pop();
  }
}

async function ask(text, urls) {
  messages.push({ role: "user", content: contentOf(text, urls) });
  showQuestion(text, urls);
  const answer = new Answer();
  const controller = new AbortController();
  setRunning(controller);
  let failure = "";
  try {
    await stream(controller.signal, (chunk) => follow(() => answer.take(chunk)));
  } catch (error) {
    failure = controller.signal.aborted ? "Stopped." : error.message;
  }
  follow(() => answer.end(failure));
  remember(answer);
  setRunning(null);
  at("text").focus();
}

function send() {
  const text = at("text").value.trim();
  if (running || (!text && pictures.length === 0)) return;
  const urls = pictures;
  at("text").value = "";
  pictures = [];
  showPictures();
  say("");
  ask(text, urls);
}

function clear() {
  messages = [];
  at("log").replaceChildren();
  at("text").focus();
}

// --- pictures to send

function readUrl(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(new Error(`${file.name} can't be read`));
    reader.readAsDataURL(file);
  });
}

async function addPictures(files) {
  for (const file of files) {
    if (!PICTURE_TYPES.includes(file.type)) {
      say(`${file.name} is no PNG, JPEG, WebP or GIF`);
      continue;
    }
    try {
      pictures.push(await readUrl(file));
    } catch (error) {
      say(error.message);
    }
  }
  showPictures();
}

function showPictures() {
  const items = pictures.map((url, i) => {
    const remove = element("button", "", "Remove");
    remove.type = "button";
    remove.setAttribute("aria-label", `Remove picture ${i + 1}`);
    remove.onclick = () => {
      pictures.splice(i, 1);
      showPictures();
      at("text").focus();
    };
    return element("li", "", picture(url, `Picture ${i + 1}, to be sent`), remove);
  });
  at("pictures").replaceChildren(...items);
}

// --- what people do

at("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  send();
});

at("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    send();
  }
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && running) running.abort();
});

document.addEventListener("paste", (event) => {
  if (event.clipboardData.files.length === 0) return;
  event.preventDefault();
  addPictures(event.clipboardData.files);
});

document.addEventListener("dragover", (event) => {
  event.preventDefault();
  at("ask").classList.add("dragged");
});

document.addEventListener("dragleave", () => at("ask").classList.remove("dragged"));

document.addEventListener("drop", (event) => {
  event.preventDefault();
  at("ask").classList.remove("dragged");
  addPictures(event.dataTransfer.files);
});

at("files").addEventListener("change", () => {
  addPictures([...at("files").files]);
  at("files").value = "";
});

at("stop").addEventListener("click", () => running?.abort());
at("clear").addEventListener("click", clear);
at("key").addEventListener("change", greet);

greet();

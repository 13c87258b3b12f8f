"""Asks a running `whimbrel serve` about a picture, with Anthropic's client; words come as they are made.

pip install anthropic; python3 examples/anthropic_messages.py photo.jpg
"""

import base64
import mimetypes
import os
import sys

import anthropic

client = anthropic.Anthropic(
    base_url=os.environ.get("ANTHROPIC_BASE_URL", "http://127.0.0.1:8080"),
    api_key=os.environ.get("ANTHROPIC_API_KEY", "none"),
)
path = sys.argv[1]
with open(path, "rb") as file:
    source = {
        "type": "base64",
        "media_type": mimetypes.guess_type(path)[0],
        "data": base64.b64encode(file.read()).decode(),
    }
question = [{"type": "image", "source": source}, {"type": "text", "text": "Describe this image."}]
with client.messages.stream(
    model=client.models.list().data[0].id,
    messages=[{"role": "user", "content": question}],
    max_tokens=1000,
) as stream:
    for text in stream.text_stream:
        print(text, end="", flush=True)
print()

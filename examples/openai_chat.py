"""Asks a running `whimbrel serve` about a picture, with OpenAI's client; words come as they are made.

pip install openai; python3 examples/openai_chat.py photo.jpg
"""

import base64
import mimetypes
import os
import sys

import openai

client = openai.OpenAI(
    base_url=os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:8080/v1"),
    api_key=os.environ.get("OPENAI_API_KEY", "none"),
)
path = sys.argv[1]
kind = mimetypes.guess_type(path)[0]
with open(path, "rb") as file:
    picture = f"data:{kind};base64,{base64.b64encode(file.read()).decode()}"
stream = client.chat.completions.create(
    model=client.models.list().data[0].id,
    messages=[
        {
            "role": "user",
            "content": [
                {"type": "image_url", "image_url": {"url": picture}},
                {"type": "text", "text": "Describe this image."},
            ],
        }
    ],
    stream=True,
)
for chunk in stream:
    for choice in chunk.choices:
        print(choice.delta.content or "", end="", flush=True)
print()

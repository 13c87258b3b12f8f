#!/bin/sh
# Asks a running `whimbrel serve` about a picture, with curl: examples/curl_chat.sh photo.png
url=${OPENAI_BASE_URL:-http://127.0.0.1:8080/v1}
{
  printf '{"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "'
  printf 'data:image/png;base64,'
  base64 <"$1" | tr -d '\n'
  printf '"}}, {"type": "text", "text": "Describe this image."}]}]}'
} | curl --silent --show-error --fail-with-body "$url/chat/completions" \
  --header "Authorization: Bearer ${OPENAI_API_KEY:-none}" \
  --header "Content-Type: application/json" --data-binary @-

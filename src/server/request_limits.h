#pragma once

#include <cstddef>

namespace whimbrel::wire {

/// What one request may ask for. The server's options may change all of it.
struct RequestLimits {
  int json_depth = 64;
  int json_values = 200'000;
  int json_members = 4096;  // of one object
  int messages = 4096;
  int images = 16;
  int videos = 1;
  int tools = 128;
  int choices = 8;
  int stops = 16;
  int stop_bytes = 256;
  int logit_bias = 1024;
  int top_logprobs = 20;
  int prompts = 64;       // of one text completion
  int media_ms = 60'000;  // to decode all pictures and videos
};

}  // namespace whimbrel::wire

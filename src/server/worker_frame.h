#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"
#include "server/http_message.h"

// What the process that holds the connections and the one that holds the model say to each other.

namespace whimbrel::http {

enum class FrameKind : uint8_t {
  // From the front to the worker:
  request = 1,  // of a client
  gone,         // nobody reads the answer any more
  // Back:
  ready,   // the model is loaded
  status,  // a WorkerReport, again and again
  whole,   // an answer
  stream,  // the head of a stream
  piece,   // of a stream
  finish,  // a stream's end; the payload says why where the server failed
  failed,  // the answer, or the rest of the stream, won't come; the payload says why
};

/// A message. `id` names a request; 0 where it is about none.
struct Frame {
  FrameKind kind = FrameKind::request;
  uint64_t id = 0;
  std::string payload = {};
};

inline constexpr size_t kFrameHeadBytes = 16;

/// Nobody sends a larger one.
inline constexpr uint64_t kLongestFrame = uint64_t{256} << 20;

struct FrameHead {
  FrameKind kind = FrameKind::request;
  uint64_t id = 0;
  uint64_t payload_bytes = 0;
};

/// The bytes in front of a payload.
std::string encode_head(const Frame& frame);

/// Throws std::runtime_error on bytes that are no head of kFrameHeadBytes, and on a payload that is
/// too long.
FrameHead decode_head(std::string_view bytes);

/// What a worker tells of itself.
struct WorkerReport {
  int running = 0;  // requests that are computed or wait
  uint64_t steps = 0;
  std::string metrics = {};  // Prometheus text
};

// Payloads. Bodies stand in front of their description, so that they need not be moved. Decoders
// throw std::runtime_error on what is no such payload.

/// A request without the fields of its head, which nobody behind the front reads.
std::string encode_request(Request request);
Request decode_request(std::string payload);

std::string encode_response(Response response);
Response decode_response(std::string payload);

std::string encode_stream_head(const StreamHead& head);
StreamHead decode_stream_head(std::string_view payload);

std::string encode_report(const WorkerReport& report);
WorkerReport decode_report(std::string_view payload);

}  // namespace whimbrel::http

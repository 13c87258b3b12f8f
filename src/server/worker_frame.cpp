#include "server/worker_frame.h"

#include <array>
#include <cstring>
#include <stdexcept>

namespace whimbrel::http {

namespace {

/// Payload bytes and kind share a word.
constexpr int kKindBits = 8;

void append_number(std::string& bytes, uint64_t number) {
  std::array<char, sizeof number> raw{};
  std::memcpy(raw.data(), &number, sizeof number);
  bytes.append(raw.data(), raw.size());
}

uint64_t number_at(std::string_view bytes, size_t at) {
  uint64_t number = 0;
  std::memcpy(&number, bytes.substr(at, sizeof number).data(), sizeof number);
  return number;
}

[[noreturn]] void refuse() {
  throw std::runtime_error("[worker] got a message that is none, expected the other process's");
}

/// Texts of clients may be no UTF-8.
std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Behind a body: its description and the description's length.
std::string with_description(std::string body, const Json& description) {
  const std::string text = dumped(description);
  body += text;
  append_number(body, text.size());
  return body;
}

/// Cuts the description off.
Json take_description(std::string& payload) {
  if (payload.size() < sizeof(uint64_t)) {
    refuse();
  }
  const size_t end = payload.size() - sizeof(uint64_t);
  const uint64_t length = number_at(payload, end);
  if (length > end) {
    refuse();
  }
  const Json description = Json::parse(payload.substr(end - length, length));
  payload.resize(end - length);
  return description;
}

Json fields_json(const std::vector<Field>& fields) {
  Json json = Json::array();
  for (const Field& field : fields) {
    json.push_back({field.name, field.value});
  }
  return json;
}

std::vector<Field> fields_of(const Json& json) {
  std::vector<Field> fields;
  for (const Json& field : json) {
    fields.push_back({field.at(0).get<std::string>(), field.at(1).get<std::string>()});
  }
  return fields;
}

/// Exceptions of the JSON library say nothing to whoever reads a log.
template <typename Decode>
auto decoded(Decode&& decode) {
  try {
    return decode();
  } catch (const Json::exception&) {
    refuse();
  }
}

}  // namespace

std::string encode_head(const Frame& frame) {
  std::string bytes;
  append_number(bytes, frame.payload.size() << kKindBits | static_cast<uint64_t>(frame.kind));
  append_number(bytes, frame.id);
  return bytes;
}

FrameHead decode_head(std::string_view bytes) {
  if (bytes.size() != kFrameHeadBytes) {
    refuse();
  }
  const uint64_t word = number_at(bytes, 0);
  FrameHead head{.id = number_at(bytes, sizeof word), .payload_bytes = word >> kKindBits};
  const uint64_t kind = word & ((1U << kKindBits) - 1);
  if (kind < static_cast<uint64_t>(FrameKind::request) ||
      kind > static_cast<uint64_t>(FrameKind::failed) || head.payload_bytes > kLongestFrame) {
    refuse();
  }
  head.kind = static_cast<FrameKind>(kind);
  return head;
}

std::string encode_request(Request request) {
  const Json description = {
      {"method", request.method},
      {"path", request.path},
      {"query", request.query},
      {"request_id", request.request_id},
      {"client", request.client},
      {"tenant", request.tenant},
  };
  return with_description(std::move(request.body), description);
}

Request decode_request(std::string payload) {
  return decoded([&] {
    const Json description = take_description(payload);
    Request request;
    request.method = description.at("method").get<std::string>();
    request.path = description.at("path").get<std::string>();
    request.query = description.at("query").get<std::string>();
    request.request_id = description.at("request_id").get<std::string>();
    request.client = description.at("client").get<std::string>();
    request.tenant = description.at("tenant").get<std::string>();
    request.body = std::move(payload);
    return request;
  });
}

std::string encode_response(Response response) {
  const Json description = {
      {"status", response.status},
      {"content_type", response.content_type},
      {"fields", fields_json(response.fields)},
      {"failure", response.failure},
      {"ignored", response.ignored},
  };
  return with_description(std::move(response.body), description);
}

Response decode_response(std::string payload) {
  return decoded([&] {
    const Json description = take_description(payload);
    Response response;
    response.status = description.at("status").get<int>();
    response.content_type = description.at("content_type").get<std::string>();
    response.fields = fields_of(description.at("fields"));
    response.failure = description.at("failure").get<std::string>();
    response.ignored = description.at("ignored").get<std::vector<std::string>>();
    response.body = std::move(payload);
    return response;
  });
}

std::string encode_stream_head(const StreamHead& head) {
  return dumped({
      {"content_type", head.content_type},
      {"fields", fields_json(head.fields)},
      {"ignored", head.ignored},
  });
}

StreamHead decode_stream_head(std::string_view payload) {
  return decoded([&] {
    const Json json = Json::parse(payload);
    return StreamHead{
        .content_type = json.at("content_type").get<std::string>(),
        .fields = fields_of(json.at("fields")),
        .ignored = json.at("ignored").get<std::vector<std::string>>(),
    };
  });
}

std::string encode_report(const WorkerReport& report) {
  return Json{
      {"running", report.running}, {"steps", report.steps}, {"metrics", report.metrics}
  }.dump();
}

WorkerReport decode_report(std::string_view payload) {
  return decoded([&] {
    const Json json = Json::parse(payload);
    return WorkerReport{
        .running = json.at("running").get<int>(),
        .steps = json.at("steps").get<uint64_t>(),
        .metrics = json.at("metrics").get<std::string>(),
    };
  });
}

}  // namespace whimbrel::http

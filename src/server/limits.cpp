#include "server/limits.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <string>

#include "base/error.h"

namespace whimbrel::http {

namespace {

constexpr int64_t kMost = 1'000'000'000;  // a gigabyte, eleven days

/// A number of the structs under its name.
struct Limit {
  std::string_view name = {};
  int64_t least = 1;
  int64_t most = kMost;
  int64_t (*get)(const ServerLimits& limits) = nullptr;
  void (*set)(ServerLimits& limits, int64_t value) = nullptr;
};

template <typename T>
int64_t to_number(const T& value) {
  return static_cast<int64_t>(value);
}

int64_t to_number(const std::chrono::milliseconds& value) {
  return value.count();
}

template <typename T>
void assign(T& to, int64_t value) {
  to = static_cast<T>(value);
}

void assign(std::chrono::milliseconds& to, int64_t value) {
  to = std::chrono::milliseconds(value);
}

/// `Part` and `Member`: where it is in ServerLimits.
template <auto Part, auto Member>
Limit limit(std::string_view name, int64_t least = 1, int64_t most = kMost) {
  return {
      .name = name,
      .least = least,
      .most = most,
      .get = [](const ServerLimits& limits) { return to_number(limits.*Part.*Member); },
      .set = [](ServerLimits& limits, int64_t value) { assign(limits.*Part.*Member, value); },
  };
}

constexpr auto kHttp = &ServerLimits::http;
constexpr auto kRequest = &ServerLimits::request;

const std::vector<Limit>& all_limits() {
  using Http = HttpLimits;
  using Asked = wire::RequestLimits;
  static const std::vector<Limit> limits = {
      limit<kHttp, &Http::header_bytes>("header_bytes", 1 << 10, 1 << 20),
      limit<kHttp, &Http::header_fields>("header_fields", 8, 10'000),
      limit<kHttp, &Http::target_bytes>("target_bytes", 64, 1 << 20),
      limit<kHttp, &Http::body_bytes>("body_bytes", 1, 200'000'000),
      limit<kHttp, &Http::bodies_bytes>("bodies_bytes"),
      limit<kHttp, &Http::connections>("connections", 1, 1'000'000),
      limit<kHttp, &Http::waiting_handlers>("waiting_handlers", 1, 1'000'000),
      limit<kHttp, &Http::header_time>("header_ms"),
      limit<kHttp, &Http::body_idle_time>("body_idle_ms"),
      limit<kHttp, &Http::body_time>("body_ms"),
      limit<kHttp, &Http::keep_alive_time>("keep_alive_ms"),
      limit<kHttp, &Http::stream_buffer_bytes>("stream_buffer_bytes", 1 << 10),
      limit<kHttp, &Http::slow_reader_time>("slow_reader_ms"),
      limit<kHttp, &Http::ping_time>("ping_ms", 0),
      limit<kRequest, &Asked::json_depth>("json_depth", 8, 256),
      limit<kRequest, &Asked::json_values>("json_values", 16, 10'000'000),
      limit<kRequest, &Asked::json_members>("json_members", 16, 1'000'000),
      limit<kRequest, &Asked::messages>("messages", 1, 1'000'000),
      limit<kRequest, &Asked::images>("images", 0, 10'000),
      limit<kRequest, &Asked::videos>("videos", 0, 100),
      limit<kRequest, &Asked::tools>("tools", 0, 10'000),
      limit<kRequest, &Asked::choices>("choices", 1, 256),
      limit<kRequest, &Asked::stops>("stops", 0, 1'000),
      limit<kRequest, &Asked::stop_bytes>("stop_bytes", 1, 1 << 16),
      limit<kRequest, &Asked::logit_bias>("logit_bias", 0, 1'000'000),
      limit<kRequest, &Asked::top_logprobs>("top_logprobs", 0, 1'000),
      limit<kRequest, &Asked::prompts>("prompts", 1, 10'000),
      limit<kRequest, &Asked::media_ms>("media_ms"),
  };
  return limits;
}

std::string all_names() {
  std::string names;
  for (const Limit& limit : all_limits()) {
    names += names.empty() ? "" : ", ";
    names += limit.name;
  }
  return names;
}

const Limit& limit_named(std::string_view name) {
  const auto found = std::ranges::find(all_limits(), name, &Limit::name);
  if (found == all_limits().end()) {
    throw Error(Fault::usage, "--limit", "got {}, expected one of {}", name, all_names());
  }
  return *found;
}

}  // namespace

Json limits_json(const ServerLimits& limits) {
  Json json = Json::object();
  for (const Limit& limit : all_limits()) {
    json[std::string(limit.name)] = limit.get(limits);
  }
  return json;
}

ServerLimits with_limit(ServerLimits limits, std::string_view setting) {
  const size_t equals = setting.find('=');
  const Limit& limit = limit_named(setting.substr(0, equals));
  const std::string_view text =
      equals == std::string_view::npos ? std::string_view() : setting.substr(equals + 1);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < limit.least ||
      value > limit.most) {
    throw Error(
        Fault::usage,
        "--limit",
        "got {}, expected {}= and a whole number from {} to {}",
        setting,
        limit.name,
        limit.least,
        limit.most
    );
  }
  limit.set(limits, value);
  return limits;
}

}  // namespace whimbrel::http

#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "server/http_limits.h"
#include "server/request_limits.h"

namespace whimbrel::http {

/// What clients of a server may take and ask for.
struct ServerLimits {
  HttpLimits http = {};
  wire::RequestLimits request = {};
};

/// All limits by name, in the order of the structs. Times are `…_ms`.
Json limits_json(const ServerLimits& limits);

/// The limits with one of them changed. Throws Error(Fault::usage) unless `setting` is NAME=VALUE
/// of a known name and a whole number that it may have.
ServerLimits with_limit(ServerLimits limits, std::string_view setting);

}  // namespace whimbrel::http

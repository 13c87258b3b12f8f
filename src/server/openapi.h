#pragma once

#include <string>

#include "base/json.h"
#include "server/limits.h"

namespace whimbrel::http {

/// What the OpenAPI document says that isn't the same of every server.
struct OpenApiFacts {
  std::string model = {};  // the served model's name
  ServerLimits limits = {};
  bool has_page = true;  // the page's routes are served
};

/// The OpenAPI 3.1 document of a server's routes: openapi.json of this folder, where
///
/// - a text `$NAME` stands for the limit of that name, `$limits` for all of them, `$version` for
/// the
///   build's version;
/// - `x-common-responses` are answers that every operation may give: those of `openai`, or of what
///   an operation's `x-errors` names. A public operation (`security` of its own) is never 401;
/// - `/v1/models/{model}` is the route of the one model there is.
Json openapi_document(const OpenApiFacts& facts);

}  // namespace whimbrel::http

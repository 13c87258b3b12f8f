#pragma once

#include <vector>

#include "server/openapi.h"
#include "server/router.h"

namespace whimbrel::http {

/// Routes that need no model: /openapi.json, and with `has_page` the page to chat on: `/`, /app.js
/// and /app.css. The page is public, for it holds no secret and asks for the key itself; the
/// document, which names the model, needs one as all else does.
std::vector<Route> page_routes(const OpenApiFacts& facts);

}  // namespace whimbrel::http

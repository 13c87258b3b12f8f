#pragma once

#include <vector>

#include "server/model_service.h"
#include "server/router.h"

namespace whimbrel::http {

/// All routes of a server of one model, which outlives them.
std::vector<Route> model_routes(ModelService& service);

}  // namespace whimbrel::http

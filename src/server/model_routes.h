#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/model_service.h"
#include "server/router.h"

namespace whimbrel::http {

/// Something that is asked of a model, and who answers.
struct ModelRoute {
  std::string method = {};
  std::string path = {};
  void (*answer)(ModelService& service, const std::shared_ptr<Exchange>& exchange) = nullptr;
  bool immediate = false;  // as Route's
};

/// All that is asked of a model that clients call `model_name`. The process that holds the model
/// answers these; the one that holds the connections hands them on.
std::vector<ModelRoute> model_routes(const std::string& model_name);

/// The same for the process that holds the model, which outlives them.
std::vector<Route> worker_routes(ModelService& service);

}  // namespace whimbrel::http

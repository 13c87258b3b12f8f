#pragma once

#include <memory>

#include "server/exchange.h"
#include "server/model_service.h"
#include "server/worker_frame.h"

// What is told of a model and its server. None of them waits.

namespace whimbrel::http {

using AnswerOf = void(ModelService& service, const std::shared_ptr<Exchange>& exchange);

AnswerOf answer_models;  // GET /v1/models
AnswerOf answer_model;   // GET /v1/models/NAME
AnswerOf answer_props;   // GET /props: settings
AnswerOf answer_slots;   // GET /slots: what it is doing

WorkerReport report_of(const ModelService& service);

}  // namespace whimbrel::http

#include "server/answer_boxes.h"

#include <cmath>

namespace whimbrel::wire {

namespace {

/// Whole numbers as such: find_boxes' fit an integer.
Json number_json(double number) {
  return number == std::floor(number) ? Json(static_cast<int64_t>(number)) : Json(number);
}

Json box_json(int choice, const Box& box, const BoxForm& form) {
  Json written = Json::array();
  for (const double number : box.numbers) {
    written.push_back(number_json(number));
  }
  return {
      {"choice", choice},
      {"kind", box.is_point() ? "point" : "box"},
      {"label", box.label},
      {"written", std::move(written)},
      {"pixels", form.scale ? Json(to_pixels(box, *form.scale)) : Json(nullptr)},
  };
}

}  // namespace

Json boxes_json(int choice, std::string_view content, const BoxForm& form) {
  Json boxes = Json::array();
  for (const Box& box : find_boxes(content, form.notation)) {
    boxes.push_back(box_json(choice, box, form));
  }
  return boxes;
}

}  // namespace whimbrel::wire

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace whimbrel {

/// How a family's models were taught to write boxes.
enum class BoxNotation {
  json,   // {"bbox_2d": [x1, y1, x2, y2], "label": "cat"}, or "point_2d": [x, y]
  pairs,  // cat(x1,y1),(x2,y2): what special tokens stood around is no part of an answer's text
};

/// A box or a point, in the numbers that were written.
struct Box {
  std::vector<double> numbers = {};  // x1, y1, x2, y2; of a point x, y
  std::string label = {};            // empty where it has none

  bool is_point() const { return numbers.size() == 2; }
};

/// The boxes that an answer names, in its order. Takes any bytes; time is linear in them.
///
/// - JSON is looked for in either notation: objects wherever they stand, in fences, lists and other
///   objects (64 levels). An object that was cut off names nothing, those closed before it do. It
///   names one box and one point at most; of a key that comes again the last counts. A number
///   beyond a million either way is no coordinate.
/// - Pairs are looked for in answers without such objects: whole numbers of up to four digits, no
///   white space, as the family writes them. A chain of one pair, or of more than two, is no box.
/// - A label of pairs is the text in front of them: in their line, behind the box before. Where
///   there is none it is the label of the box before. One of over 256 bytes is left out.
std::vector<Box> find_boxes(std::string_view text, BoxNotation notation);

}  // namespace whimbrel

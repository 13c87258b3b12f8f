#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace whimbrel {

/// Ends a stream of text at the stop string that is complete first; of those complete at once, at
/// the longest. Where that is doesn't depend on how the text is cut. Text that could still become
/// a stop is held back, so what was passed on never has to be taken back; no piece ends inside a
/// UTF-8 character if none comes in so. The cost of a byte doesn't depend on the number of stops
/// (an Aho-Corasick automaton).
class StopText {
 public:
  /// Throws Error(Fault::usage) on an empty string.
  explicit StopText(const std::vector<std::string>& stops);

  /// Text that is safe to pass on after `piece`. Nothing more comes once stopped.
  std::string push(std::string_view piece);

  /// What was held back, when the stream ends otherwise.
  std::string finish();

  bool stopped() const { return stopped_; }

  /// The stop string that ended the text; empty while none did.
  const std::string& matched() const { return matched_; }

 private:
  /// The beginning of at least one stop; the first node is the empty one.
  struct Node {
    std::vector<std::pair<char, uint32_t>> next = {};  // longer by this byte
    uint32_t fallback = 0;                             // the longest other that this one ends with
    uint32_t depth = 0;                                // bytes
    uint32_t stop = 0;  // bytes of the longest stop that this one ends with; 0: none
  };

  void add(std::string_view stop);
  void link();
  uint32_t child(uint32_t node, char c) const;
  uint32_t step(uint32_t node, char c) const;

  std::vector<Node> nodes_ = std::vector<Node>(1);
  uint32_t node_ = 0;
  std::string held_;
  std::string matched_;
  bool stopped_ = false;
};

}  // namespace whimbrel

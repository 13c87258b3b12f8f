#pragma once

#include <cstdint>
#include <string>

#include "weights/hub_pull.h"

namespace whimbrel {

/// Tells on stderr how far a pull is: a line a file, and on a terminal one that is redrawn in place
/// with the file's and the whole's share; elsewhere a line for each tenth of the whole.
class PullProgress {
 public:
  explicit PullProgress(bool enabled);
  ~PullProgress();
  PullProgress(const PullProgress&) = delete;
  PullProgress& operator=(const PullProgress&) = delete;

  /// What to give to pull_model; it must not outlive this object.
  PullEvents events();

 private:
  void begin(uint64_t total);
  void begin_file(const std::string& file, uint64_t size, uint64_t present);
  void update(uint64_t present);
  void redraw(uint64_t done, int percent);
  void say(const std::string& line);

  bool enabled_;
  bool in_place_;  // redraw one line
  bool drawn_ = false;
  std::string file_ = {};
  uint64_t total_ = 0;
  uint64_t finished_ = 0;  // bytes of the files before the current one
  uint64_t size_ = 0;
  uint64_t present_ = 0;
  int shown_ = 0;  // percent of the whole
};

}  // namespace whimbrel

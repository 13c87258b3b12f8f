#pragma once

namespace whimbrel::test {

/// Counts what threads other than the one that made it take from the heap, in any part of the
/// program that asks `operator new`. A program that uses it has its own operators; one at a time.
class AllocationsElsewhere {
 public:
  AllocationsElsewhere();
  ~AllocationsElsewhere();
  AllocationsElsewhere(const AllocationsElsewhere&) = delete;
  AllocationsElsewhere& operator=(const AllocationsElsewhere&) = delete;

  int count() const;
};

}  // namespace whimbrel::test

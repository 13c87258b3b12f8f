// Loops that are gone after compilation, whatever the optimiser thinks of their length.

namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE {

#define WHIMBREL_INLINE __attribute__((always_inline)) inline

/// As std::integral_constant, which these units do not include.
template <int n>
struct Constant {
  static constexpr int value = n;  // NOLINT(readability-identifier-naming): the standard's name
};

/// body(Constant<0>()), ..., body(Constant<count - 1>()).
template <int count, typename Body>
WHIMBREL_INLINE void unroll(const Body& body) {
  if constexpr (count > 0) {
    unroll<count - 1>(body);
    body(Constant<count - 1>());
  }
}

}  // namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE

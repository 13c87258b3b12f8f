#pragma once

namespace whimbrel {

/// The command line: parses arguments, runs a subcommand, and turns every failure into one sentence
/// on stderr and an exit code of docs/contract.md.
int run_app(int argc, char** argv);

}  // namespace whimbrel

#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace whimbrel {

/// Each adds one subcommand, which runs when the arguments name it.
void add_bench_command(CLI::App& app);
void add_compare_command(CLI::App& app);
void add_doctor_command(CLI::App& app);
void add_generate_command(CLI::App& app);
void add_inspect_command(CLI::App& app);
void add_list_command(CLI::App& app);
void add_pull_command(CLI::App& app);
void add_remove_command(CLI::App& app);
void add_profile_command(CLI::App& app);
void add_run_command(CLI::App& app);
/// `arguments`: the program's own, for the worker process that it starts.
void add_serve_command(CLI::App& app, std::vector<std::string> arguments);
void add_trace_command(CLI::App& app);
void add_verify_command(CLI::App& app);
void add_version_command(CLI::App& app);

}  // namespace whimbrel

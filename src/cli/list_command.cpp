#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "engine/memory_estimate.h"
#include "weights/hub_cache.h"
#include "weights/hub_settings.h"

namespace whimbrel {

namespace {

constexpr size_t kShortCommit = 8;

struct ListFlags {
  bool json = false;
  bool quiet = false;
};

/// What a person calls the revision: the branches and tags, or the start of the commit.
std::string revision_text(const CachedRevision& revision) {
  if (revision.refs.empty()) {
    return revision.commit.substr(0, kShortCommit);
  }
  return fmt::format("{}", fmt::join(revision.refs, ","));
}

Json revision_json(const CachedRevision& revision) {
  return {
      {"name", revision.repo},
      {"refs", revision.refs},
      {"commit", revision.commit},
      {"files", revision.files},
      {"bytes", revision.bytes},
      {"path", revision.path.string()},
      {"missing", revision.missing.empty() ? Json() : Json(revision.missing)}
  };
}

std::string list_json(const std::filesystem::path& cache, const std::vector<CachedRevision>& all) {
  Json models = Json::array();
  for (const CachedRevision& revision : all) {
    models.push_back(revision_json(revision));
  }
  return json_line({{"cache", cache.string()}, {"models", models}});
}

std::string list_names(const std::vector<CachedRevision>& all) {
  std::string text;
  std::set<std::string> seen;
  for (const CachedRevision& revision : all) {
    if (seen.insert(revision.repo).second) {
      text += revision.repo + "\n";
    }
  }
  return text;
}

std::string list_table(const std::vector<CachedRevision>& all) {
  size_t name_width = 4;
  size_t revision_width = 8;
  for (const CachedRevision& revision : all) {
    name_width = std::max(name_width, revision.repo.size());
    revision_width = std::max(revision_width, revision_text(revision).size());
  }
  const auto line = [=](const std::string& name,
                        const std::string& revision,
                        const std::string& size,
                        const std::string& path) {
    return fmt::format(
        "{:<{}}  {:<{}}  {:>9}  {}\n", name, name_width, revision, revision_width, size, path
    );
  };
  std::string text = line("NAME", "REVISION", "SIZE", "PATH");
  for (const CachedRevision& revision : all) {
    const std::string path = revision.path.string();
    text += line(
        revision.repo,
        revision_text(revision),
        size_text(revision.bytes),
        revision.missing.empty() ? path : fmt::format("{} (without {})", path, revision.missing)
    );
  }
  return text;
}

void run_list(const ListFlags& flags) {
  const std::filesystem::path cache = hub_cache_folder();
  const std::vector<CachedRevision> all = list_cached(cache);
  if (flags.json) {
    write_stdout(list_json(cache, all));
  } else if (flags.quiet) {
    write_stdout(list_names(all));
  } else if (all.empty()) {
    write_stderr(fmt::format("no models in {}; whimbrel pull brings one\n", cache.string()));
  } else {
    write_stdout(list_table(all));
  }
}

}  // namespace

void add_list_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("list", "List the models in the Hugging Face cache");
  const auto flags = std::make_shared<ListFlags>();
  CLI::Option* json = command->add_flag("--json", flags->json, "One line of JSON");
  command->add_flag("-q,--quiet", flags->quiet, "Names only, one a line")->excludes(json);
  command->footer("Example:\n  whimbrel list --json");
  command->callback([flags] { run_list(*flags); });
}

}  // namespace whimbrel

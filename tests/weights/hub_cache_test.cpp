#include "weights/hub_cache.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "tests/weights/weight_folder.h"
#include "weights/hub_client.h"
#include "weights/hub_file.h"

namespace whimbrel {

namespace fs = std::filesystem;

namespace {

const std::string kCommit(40, 'c');
const std::string kOther(40, 'd');
// As git hash-object and sha256sum say of "hello".
const std::string kHelloSha1 = "b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0";
const std::string kHelloSha256 = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

class HubCache : public testing::Test {
 protected:
  fs::path write(const fs::path& path, std::string_view bytes) const {
    fs::create_directories((root_.path() / path).parent_path());
    return root_.write(path.string(), bytes);
  }

  /// A snapshot's file, as a download leaves it.
  void put(const std::string& name, const std::string& commit = kCommit) const {
    write(folder_.blobs() / kHelloSha1, "hello");
    put_into_snapshot(folder_, commit, name, kHelloSha1, true);
  }

  test::WeightFolder root_;
  HubModelFolder folder_{root_.path(), "owner/name"};
};

}  // namespace

TEST_F(HubCache, Layout) {
  EXPECT_EQ(folder_.path(), root_.path() / "models--owner--name");
  EXPECT_EQ(folder_.locks(), root_.path() / ".locks/models--owner--name");
  EXPECT_EQ(folder_.ref("refs/pr/1"), folder_.path() / "refs/refs/pr/1");
  put("config.json");
  const fs::path file = folder_.snapshots() / kCommit / "config.json";
  EXPECT_EQ(fs::read_symlink(file), "../../blobs/" + kHelloSha1);
  EXPECT_EQ(read_file(file, Fault::io), "hello");
  EXPECT_TRUE(has_file(folder_, kCommit, "config.json"));
  EXPECT_FALSE(has_file(folder_, kOther, "config.json"));
  EXPECT_TRUE(has_blob(folder_, kHelloSha1, 5));
  EXPECT_FALSE(has_blob(folder_, kHelloSha1, 4));
}

TEST_F(HubCache, ALinkIsReplaced) {
  write(folder_.snapshots() / kCommit / "config.json", "old");
  put("config.json");
  EXPECT_EQ(read_file(folder_.snapshots() / kCommit / "config.json", Fault::io), "hello");
}

TEST_F(HubCache, LinksOutOfTheCacheAreRefused) {
  const test::WeightFolder outside;
  fs::create_directories(folder_.blobs());
  fs::create_symlink(outside.write("x", "hello"), folder_.blobs() / kHelloSha1);
  test::error_text(Fault::io, [&] { has_blob(folder_, kHelloSha1, 5); });
}

TEST_F(HubCache, AModelFolderMayLieElsewhere) {
  const test::WeightFolder elsewhere;
  fs::create_directory_symlink(elsewhere.path(), folder_.path());
  put("config.json");
  EXPECT_TRUE(has_file(folder_, kCommit, "config.json"));
  remove_cached(folder_);
  EXPECT_FALSE(fs::exists(fs::symlink_status(folder_.path())));
  EXPECT_TRUE(fs::exists(elsewhere.path() / "blobs" / kHelloSha1));
}

TEST_F(HubCache, FindsASnapshotByRefOrCommit) {
  put("config.json");
  EXPECT_FALSE(find_snapshot(root_.path(), {"owner/name", "main"}));
  write_ref(folder_, "main", kCommit);
  write_ref(folder_, "refs/pr/1", kCommit);
  const fs::path snapshot = folder_.snapshots() / kCommit;
  EXPECT_EQ(find_snapshot(root_.path(), {"owner/name", "main"}), snapshot);
  EXPECT_EQ(find_snapshot(root_.path(), {"owner/name", "refs/pr/1"}), snapshot);
  EXPECT_EQ(find_snapshot(root_.path(), {"owner/name", kCommit}), snapshot);
  EXPECT_FALSE(find_snapshot(root_.path(), {"owner/name", kOther}));
  EXPECT_FALSE(find_snapshot(root_.path(), {"owner/other", "main"}));
  write(folder_.ref("main"), kCommit + "\n");
  EXPECT_EQ(find_snapshot(root_.path(), {"owner/name", "main"}), snapshot);
  write(folder_.ref("main"), "../../x");
  test::model_error([&] { find_snapshot(root_.path(), {"owner/name", "main"}); });
}

TEST_F(HubCache, ARefIsACommitAndNothingElse) {
  write_ref(folder_, "main", kCommit);
  EXPECT_EQ(read_file(folder_.ref("main"), Fault::io), kCommit);
  write_ref(folder_, "main", kOther);
  EXPECT_EQ(read_file(folder_.ref("main"), Fault::io), kOther);
  write_ref(folder_, kCommit, kCommit);
  EXPECT_FALSE(fs::exists(folder_.ref(kCommit)));
}

TEST_F(HubCache, SaysWhatASnapshotLacks) {
  const fs::path snapshot = folder_.snapshots() / kCommit;
  put("README.md");
  EXPECT_EQ(missing_file(snapshot), "config.json");
  put("config.json");
  EXPECT_EQ(missing_file(snapshot), "tokenizer.json");
  put("tokenizer.json");
  EXPECT_EQ(missing_file(snapshot), "*.safetensors");
  put("model-1.safetensors");
  EXPECT_EQ(missing_file(snapshot), "");
  write(
      snapshot / "model.safetensors.index.json",
      R"({"weight_map":{"a":"model-1.safetensors","b":"model-2.safetensors"}})"
  );
  EXPECT_EQ(missing_file(snapshot), "model-2.safetensors");
  put("model-2.safetensors");
  EXPECT_EQ(missing_file(snapshot), "");
  fs::remove(folder_.blobs() / kHelloSha1);
  EXPECT_EQ(missing_file(snapshot), "config.json");
}

TEST_F(HubCache, ListsEverySnapshot) {
  EXPECT_TRUE(list_cached(root_.path() / "nowhere").empty());
  put("config.json");
  put("config.json", kOther);
  put("tokenizer.json", kOther);
  write_ref(folder_, "v2", kOther);
  write_ref(folder_, "main", kOther);
  fs::create_directories(root_.path() / "datasets--owner--name/snapshots" / kCommit);
  fs::create_directories(root_.path() / "models--a--b--c/snapshots" / kCommit);
  const std::vector<CachedRevision> found = list_cached(root_.path());
  ASSERT_EQ(found.size(), 2);
  EXPECT_EQ(found[0].repo, "owner/name");
  EXPECT_EQ(found[0].commit, kCommit);
  EXPECT_TRUE(found[0].refs.empty());
  EXPECT_EQ(found[1].refs, (std::vector<std::string>{"main", "v2"}));
  EXPECT_EQ(found[1].files, 2);
  EXPECT_EQ(found[1].bytes, 10);
  EXPECT_EQ(found[1].missing, "*.safetensors");
}

TEST_F(HubCache, AReferenceIsNoWeights) {
  put("config.json");
  put("tokenizer.json");
  put("whimbrel-reference.safetensors");
  EXPECT_EQ(missing_file(folder_.snapshots() / kCommit), "*.safetensors");
}

TEST_F(HubCache, ARefWithoutACommitEndsNoListing) {
  put("config.json");
  write_ref(folder_, "main", kCommit);
  write(folder_.ref("large"), std::string(5000, 'x'));
  write(folder_.ref("odd"), "no commit");
  const std::vector<CachedRevision> found = list_cached(root_.path());
  ASSERT_EQ(found.size(), 1);
  EXPECT_EQ(found[0].refs, std::vector<std::string>{"main"});
}

TEST_F(HubCache, FoldersThatCannotBeListedAreNotCountedAsEmpty) {
  put("config.json");
  const fs::path snapshot = folder_.snapshots() / kCommit;
  fs::create_directory_symlink("loop", snapshot / "loop");  // links to nothing are no failure
  EXPECT_EQ(list_cached(root_.path()).at(0).files, 1);
  fs::remove_all(folder_.path() / "refs");
  write(folder_.path() / "refs", "a file");
  EXPECT_THROW(list_cached(root_.path()), Error);
}

TEST_F(HubCache, DanglingLinksHaveNoBytes) {
  put("config.json");
  put("tokenizer.json");
  fs::remove(folder_.blobs() / kHelloSha1);
  const std::vector<CachedRevision> found = list_cached(root_.path());
  ASSERT_EQ(found.size(), 1);
  EXPECT_EQ(found[0].files, 0);
  EXPECT_EQ(found[0].bytes, 0);
  EXPECT_EQ(cached_bytes(folder_), 0);
}

TEST_F(HubCache, BytesOnDiskAreCountedOnce) {
  put("config.json");
  put("tokenizer.json");
  write(folder_.blobs() / (kHelloSha256 + ".incomplete"), "123");
  EXPECT_EQ(cached_bytes(folder_), 8);
}

TEST_F(HubCache, HashesAreThoseOfGitAndSha256) {
  const fs::path file = write("x", "hello");
  EXPECT_EQ(hash_for_blob(file, kHelloSha1, {}), kHelloSha1);
  EXPECT_EQ(hash_for_blob(file, kHelloSha256, {}), kHelloSha256);
  EXPECT_THROW(hash_for_blob(root_.path() / "y", kHelloSha1, {}), Error);
}

TEST_F(HubCache, APartialFileGoesOn) {
  const fs::path path = root_.path() / "x.incomplete";
  PartialFile(path).append("hel");
  PartialFile again(path);
  EXPECT_EQ(again.size(), 3);
  again.append("lo");
  again.move_to(root_.path() / "x");
  EXPECT_EQ(read_file(root_.path() / "x", Fault::io), "hello");
  EXPECT_FALSE(fs::exists(path));
}

TEST(HubListing, Reads) {
  const std::string bytes = fmt::format(
      R"({{"sha":"{}","siblings":[{{"rfilename":"a.json","size":3}},{{"rfilename":"b/c"}}]}})",
      kCommit
  );
  const HubListing listing = parse_hub_listing(bytes, "owner/name");
  EXPECT_EQ(listing.commit, kCommit);
  EXPECT_EQ(listing.files, (std::vector<std::string>{"a.json", "b/c"}));
}

TEST(HubListing, RefusesUnsafeNames) {
  for (const char* name : {"../x", "/x", "a\\\\b", "C:x", "x\\u0000", "x\\ny", ""}) {
    const std::string bytes =
        fmt::format(R"({{"sha":"{}","siblings":[{{"rfilename":"{}"}}]}})", kCommit, name);
    const std::string error =
        test::error_text(Fault::network, [&] { parse_hub_listing(bytes, "owner/name"); });
    EXPECT_TRUE(test::contains(error, "unsafe file name")) << name;
  }
}

}  // namespace whimbrel

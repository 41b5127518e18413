#include <filesystem>
#include <fstream>
#include <string>

#include <tooldecode/core/read_file.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;

TEST_CASE("read_file returns all bytes of a file, NUL and line ends included") {
  const auto path = std::filesystem::temp_directory_path() / "tooldecode_read_file";
  for (const std::string& bytes : {std::string(), std::string("\0a\r\n\xFF\x1A", 6)}) {
    std::ofstream(path, std::ios::binary) << bytes;
    CHECK(td::core::read_file(path) == bytes);
  }
  std::filesystem::remove(path);
}

TEST_CASE("read_file_head returns the first bytes, or all of a shorter file") {
  const auto path = std::filesystem::temp_directory_path() / "tooldecode_read_file_head";
  std::ofstream(path, std::ios::binary) << "abcd";
  CHECK(td::core::read_file_head(path, 0).empty());
  CHECK(td::core::read_file_head(path, 3) == "abc");
  CHECK(td::core::read_file_head(path, 9) == "abcd");
  std::filesystem::remove(path);
}

TEST_CASE("read_file of a missing path or a folder throws an error that names the path") {
  CHECK_THROWS_WITH(td::core::read_file("/nowhere/file"),
                    "/nowhere/file: is not a file that can be read");
  const std::string folder = std::filesystem::temp_directory_path().string();
  CHECK_THROWS_WITH(td::core::read_file(folder), folder + ": is not a file that can be read");
}

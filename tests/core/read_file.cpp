#include <filesystem>
#include <fstream>
#include <string>

#include <tooldecode/core/read_file.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;

TEST_CASE("a file is read with all of its bytes") {
  const auto path = std::filesystem::temp_directory_path() / "tooldecode_read_file";
  for (const std::string& bytes : {std::string(), std::string("\0a\r\n\xFF\x1A", 6)}) {
    std::ofstream(path, std::ios::binary) << bytes;
    CHECK(td::core::read_file(path) == bytes);
  }
  std::filesystem::remove(path);
}

TEST_CASE("what is no file is refused with its path") {
  CHECK_THROWS_WITH(td::core::read_file("/nowhere/file"),
                    "/nowhere/file: is not a file that can be read");
  const std::string folder = std::filesystem::temp_directory_path().string();
  CHECK_THROWS_WITH(td::core::read_file(folder), folder + ": is not a file that can be read");
}

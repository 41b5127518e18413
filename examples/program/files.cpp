#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <tooldecode/core/read_file.hpp>
#include <tooldecode/vocabulary/load_vocabulary.hpp>

#include <program/files.hpp>
#include <zlib.h>

namespace program {

std::string read_file(const std::filesystem::path& path, std::size_t max_inflated) {
  using tooldecode::Errc;
  using tooldecode::Error;
  if (std::filesystem::is_directory(path)) {
    throw Error(Errc::file_unreadable, path.string(), "is a directory, not a file");
  }
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) throw Error(Errc::file_unreadable, path.string(), "cannot be opened");
  std::string text;
  std::vector<char> buffer(std::size_t{1} << 16);
  for (;;) {
    const int count = gzread(file.get(), buffer.data(), static_cast<unsigned>(buffer.size()));
    if (count < 0) throw Error(Errc::file_unreadable, path.string(), "cannot be read to its end");
    if (count == 0) break;
    if (gzdirect(file.get()) == 0 && text.size() + static_cast<std::size_t>(count) > max_inflated) {
      throw Error(Errc::limit_exceeded, path.string(),
                  "inflates to more than " + std::to_string(max_inflated) +
                      " bytes; the option --max-inflated raises that");
    }
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  // A truncated gzip file ends like a complete one, except for the state of the stream.
  int state = Z_OK;
  gzerror(file.get(), &state);
  if (state == Z_BUF_ERROR) throw Error(Errc::file_unreadable, path.string(), "is cut short");
  return text;
}

tooldecode::Tokenizer open_tokenizer(const std::filesystem::path& path, std::size_t max_inflated) {
  // A pipe, for example, can be read only once.
  const bool is_file       = std::filesystem::is_regular_file(path);
  const bool is_read_whole = !is_file || tooldecode::core::read_file_head(path, 4) != "GGUF";
  if (std::filesystem::is_directory(path) || !is_read_whole) {
    return tooldecode::load_tokenizer(path);
  }
  return tooldecode::parse_tokenizer(read_file(path, max_inflated), path.string());
}

}  // namespace program

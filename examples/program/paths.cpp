#include <program/paths.hpp>

const char* const program::data_folder = TOOLDECODE_EXAMPLE_DATA;

/// \file
/// Where the tree lies: known to one small file, so that objects of every other are the same in
/// every checkout.
#pragma once

namespace program {

/// The folder of the data that comes with the program.
extern const char* const data_folder;

}  // namespace program

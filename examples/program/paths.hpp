/// \file
/// Path of the source tree. Only one small file contains it, so that the objects of all other files
/// are equal in every checkout.
#pragma once

namespace program {

extern const char* const data_folder;

}  // namespace program

/// \file
/// Metaschemas: the schemas of schemas, which documents may refer to.
#pragma once

#include <map>
#include <string>

#include <tooldecode/text/json_value.hpp>

namespace tooldecode::schema {

/// The metaschemas of drafts 7, 2019-09 and 2020-12 and of their vocabularies by URI, without what
/// only annotates. Those of drafts 4 and 6 demand that the items of an `enum`, any values, do not
/// repeat, which no grammar can.
///
/// \par Complexity  parsed once per process, charged to no BuildBudget
/// \par Threads     may run concurrently
/// \par Source      json-schema.org; BSD-3-Clause, (c) JSON Schema Specification Authors
[[nodiscard]] const std::map<std::string, JsonValue>& metaschemas();

}  // namespace tooldecode::schema

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/schema/metaschemas.ipp>
#endif

/// \file
/// Forward declarations of what users name most.
#pragma once

#include <tooldecode/core/types.hpp>

namespace tooldecode {

/// Stable codes of bad input.
enum class Errc;
class Error;

class Vocabulary;
class ByteTrie;

class Grammar;
class SchemaCompiler;

struct ToolCall;
class ToolSet;
struct PythonCall;
struct JsonCall;
struct HarmonyCall;
struct DelimitedCall;
struct XmlCall;
struct PositionalCall;

class TokenMask;
class VocabularyIndex;
class GrammarConstraint;
class JsonSchemaConstraint;
class RegexConstraint;
class ChoiceConstraint;
class EbnfConstraint;
class TokenTrie;
class ToolCallFSM;

class FrequencyRanks;
class RankedTokens;

class LlamaModel;
class EagleModel;
class MedusaModel;
class LogitsPipeline;

class DraftTree;
class ForcedDrafter;
class PromptLookupDrafter;
struct Walk;

struct DecodeOptions;
struct Output;

struct ToolResult;
class ToolExecutor;
class ToolCache;
class SpeculationPolicy;
class SpeculationGate;

}  // namespace tooldecode

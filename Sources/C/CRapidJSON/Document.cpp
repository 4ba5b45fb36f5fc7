#include "CRapidJSON.h"

#include "Checker.h"
#include "Text.h"

namespace {

using CheckedReader = pinfold_rapidjson::GenericReader<
    pinfold::RunsOfUTF8, pinfold::RunsOfUTF8, pinfold::Allocator>;

constexpr unsigned kFlags = pinfold_rapidjson::kParseIterativeFlag
    | pinfold_rapidjson::kParseValidateEncodingFlag
    | pinfold_rapidjson::kParseNumbersAsStringsFlag;

}  // namespace

namespace pinfold_rapidjson {

/// RFC 8259 §6. RapidJSON's own function converts while it reads, and refuses a number beyond the
/// range of double precision even if only its digits are requested.
template <>
template <>
void CheckedReader::ParseNumber<kFlags, pinfold::Text, pinfold::Checker>(
    pinfold::Text &text, pinfold::Checker &checker) {
    const char *const start = text.src_, *const end = text.end_;
    const char *at = start;
    const auto digits = [&at, end] {
        const char *const first = at;
        while (at != end && static_cast<unsigned char>(*at - '0') < 10) ++at;
        return at != first;
    };
    ParseErrorCode fault = kParseErrorNone;
    if (at != end && *at == '-') ++at;
    if (at != end && *at == '0')
        ++at;
    else if (!digits())
        fault = kParseErrorValueInvalid;
    if (fault == kParseErrorNone && at != end && *at == '.') {
        ++at;
        if (!digits()) fault = kParseErrorNumberMissFraction;
    }
    if (fault == kParseErrorNone && at != end && (*at == 'e' || *at == 'E')) {
        ++at;
        if (at != end && (*at == '+' || *at == '-')) ++at;
        if (!digits()) fault = kParseErrorNumberMissExponent;
    }
    text.src_ = at;
    if (fault != kParseErrorNone) RAPIDJSON_PARSE_ERROR(fault, text.Tell());
    if (!checker.RawNumber(start, static_cast<SizeType>(at - start), false))
        RAPIDJSON_PARSE_ERROR(kParseErrorTermination, text.Tell());
}

}  // namespace pinfold_rapidjson

struct json_document {
    pinfold::Memory memory;
    pinfold::Checker checker{memory};
};

namespace {

/// In our words: RapidJSON's are sentences, written for a library.
const char *words(pinfold_rapidjson::ParseErrorCode code, bool at_end) {
    using namespace pinfold_rapidjson;
    switch (code) {
    case kParseErrorDocumentEmpty: return "there is no value";
    case kParseErrorDocumentRootNotSingular: return "more after the value";
    case kParseErrorValueInvalid: return at_end ? "the text ends within a value" : "not a value";
    case kParseErrorObjectMissName:
        return at_end ? "the text ends within an object" : "not a member's name";
    case kParseErrorObjectMissColon: return "no colon behind a member's name";
    case kParseErrorObjectMissCommaOrCurlyBracket:
        return at_end ? "the text ends within an object" : "neither , nor } behind a member";
    case kParseErrorArrayMissCommaOrSquareBracket:
        return at_end ? "the text ends within an array" : "neither , nor ] behind an element";
    case kParseErrorStringUnicodeEscapeInvalidHex: return "not four hex digits behind \\u";
    case kParseErrorStringUnicodeSurrogateInvalid:
        return "the escape of a surrogate without its other half";
    case kParseErrorStringEscapeInvalid: return "not an escape";
    case kParseErrorStringMissQuotationMark: return "the text ends within a string";
    case kParseErrorNumberMissFraction: return "no digit behind a decimal point";
    case kParseErrorNumberMissExponent: return "no digit in an exponent";
    default: return "not JSON";
    }
}

json_outcome outcome_of(
    const pinfold::Text &text, pinfold_rapidjson::ParseResult result,
    const pinfold::Checker &checker) {
    using namespace pinfold_rapidjson;
    if (checker.outcome.status != JSON_READ) return checker.outcome;
    if (!result.IsError()) {
        // RapidJSON takes a NUL for the end.
        if (text.src_ == text.end_) return json_outcome{JSON_READ, 0, 0, ""};
        return json_outcome{JSON_MALFORMED, 0, text.Tell(), "more after the value"};
    }
    if (result.Code() == kParseErrorStringInvalidEncoding)
        return json_outcome{JSON_ENCODING, 0, text.Tell(), "not UTF-8"};
    const size_t offset = result.Offset();
    const bool at_end = offset >= text.size_;
    const char *why = words(result.Code(), at_end);
    const unsigned char byte = at_end ? ' ' : static_cast<unsigned char>(text.begin_[offset]);
    if (byte < 0x20
        && (result.Code() == kParseErrorStringEscapeInvalid
            || result.Code() == kParseErrorStringMissQuotationMark))
        why = "a control character in a string";
    return json_outcome{JSON_MALFORMED, 0, offset, why};
}

json_outcome read(
    json_document &document, pinfold::Text &text, const json_limits &limits, bool builds) {
    document.memory.allow(limits.memory);
    document.checker.begin(text, limits, builds);
    pinfold::Allocator allocator(&document.memory);
    CheckedReader reader(&allocator);
    return outcome_of(text, reader.Parse<kFlags>(text, document.checker), document.checker);
}

}  // namespace

extern "C" {

json_document *json_document_create(void) { return new (std::nothrow) json_document; }

void json_document_destroy(json_document *document) { delete document; }

json_outcome json_document_read(
    json_document *document, const void *bytes, size_t count, json_limits limits, bool builds) {
    if (count >= UINT32_MAX) return json_outcome{JSON_TOO_LARGE, 0, 0, "4 GiB or more"};
    const char *start = count == 0 ? "" : static_cast<const char *>(bytes);
    try {
        pinfold::Text text(start, count);
        // A byte order mark may be ignored (RFC 8259 §8.1), and is.
        if (count >= 3 && std::memcmp(start, "\xEF\xBB\xBF", 3) == 0) text.src_ += 3;
        return read(*document, text, limits, builds);
    } catch (const std::bad_alloc &) {
        return json_outcome{JSON_NO_MEMORY, 0, 0, "no memory"};
    } catch (...) {
        return json_outcome{JSON_MALFORMED, 0, 0, "the parser failed"};
    }
}

const json_event *json_document_events(const json_document *document, size_t *count) {
    *count = document->checker.events().count();
    return document->checker.events().values();
}

const void *json_document_arena(const json_document *document) {
    return document->checker.arena().values();
}

bool json_document_open(
    const json_document *document, size_t level, const char **name, size_t *length,
    size_t *index) {
    return document->checker.path(level, name, length, index);
}

}  // extern "C"

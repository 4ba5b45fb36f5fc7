import CYAML

/// The parse events of a YAML text, in the order of the text. The only file that calls libyaml.
///
/// libyaml holds pointers to its parser and to the text: both keep their address until they are
/// freed together. Its parser is a state machine that does not recurse, but nothing in libyaml
/// 0.2.5 limits how deep collections nest: ``YAMLDocument`` does.
struct YAMLEvents: ~Copyable {
    /// What the parser read, and where it begins.
    struct Event {
        /// Tags are left out: the checks know what each key's value must be.
        enum Content {
            case documentStart
            case documentEnd
            case alias(String)
            /// Plain means neither in quotes nor a block (`|`, `>`).
            case scalar(String, isPlain: Bool, anchor: String?)
            case sequenceStart(anchor: String?)
            case mappingStart(anchor: String?)
            /// The end of the innermost sequence or mapping.
            case collectionEnd
            /// Repeated on every further call.
            case streamEnd
        }

        /// Counted from 1. A line ends with CR, LF, CRLF, U+0085, U+2028 or U+2029 (YAML 1.1,
        /// section 5.4).
        let line: Int
        /// Counted from 1, in Unicode scalars.
        let column: Int
        /// Where it is in the text, in Unicode scalars.
        let range: Range<Int>
        let content: Content
    }

    private let parser: UnsafeMutablePointer<yaml_parser_t>
    private let text: UnsafeMutableBufferPointer<UInt8>

    /// - Parameter bytes: UTF-8 without a byte order mark.
    init(_ bytes: ArraySlice<UInt8>) throws(YAMLError) {
        let parser = UnsafeMutablePointer<yaml_parser_t>.allocate(capacity: 1)
        parser.initialize(to: yaml_parser_t())
        guard yaml_parser_initialize(parser) == 1 else {
            parser.deallocate()
            throw .outOfMemory
        }
        self.parser = parser
        text = .allocate(capacity: bytes.count)
        _ = text.initialize(from: bytes)
        yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING)
        yaml_parser_set_input_string(parser, UnsafePointer(text.baseAddress), text.count)
    }

    deinit {
        yaml_parser_delete(parser)
        parser.deallocate()
        text.deallocate()
    }

    /// The next event. After an error there are no more.
    mutating func next() throws(YAMLError) -> Event {
        while true {
            var event = yaml_event_t()
            defer { yaml_event_delete(&event) }
            guard yaml_parser_parse(parser, &event) == 1 else { throw error }
            guard let content = try Self.content(of: event) else { continue }
            let start = Int(event.start_mark.index)
            return Event(
                line: Int(event.start_mark.line) + 1, column: Int(event.start_mark.column) + 1,
                range: start..<max(start, Int(event.end_mark.index)), content: content)
        }
    }

    /// The content of an event, or `nil` for the stream's start.
    private static func content(of event: yaml_event_t) throws(YAMLError) -> Event.Content? {
        switch event.type {
        case YAML_STREAM_START_EVENT: return nil
        case YAML_DOCUMENT_START_EVENT: return .documentStart
        case YAML_DOCUMENT_END_EVENT: return .documentEnd
        case YAML_ALIAS_EVENT: return .alias(name(event.data.alias.anchor) ?? "")
        case YAML_SCALAR_EVENT:
            let scalar = event.data.scalar
            // Not NUL-terminated text: an escape can put a NUL into it.
            let bytes = UnsafeBufferPointer(start: scalar.value, count: scalar.length)
            guard let text = String(validating: bytes, as: UTF8.self) else {
                throw .syntax(
                    context: nil, problem: "a value is not UTF-8",
                    line: Int(event.start_mark.line) + 1, column: Int(event.start_mark.column) + 1)
            }
            let isPlain = scalar.style == YAML_PLAIN_SCALAR_STYLE
            // A byte order mark that was pasted along with a value is not a part of it.
            let value =
                isPlain && text.unicodeScalars.first == "\u{FEFF}"
                ? String(text.unicodeScalars.dropFirst()) : text
            return .scalar(value, isPlain: isPlain, anchor: name(scalar.anchor))
        case YAML_SEQUENCE_START_EVENT:
            return .sequenceStart(anchor: name(event.data.sequence_start.anchor))
        case YAML_MAPPING_START_EVENT:
            return .mappingStart(anchor: name(event.data.mapping_start.anchor))
        case YAML_SEQUENCE_END_EVENT, YAML_MAPPING_END_EVENT: return .collectionEnd
        // Also "no event", which libyaml returns after the end.
        default: return .streamEnd
        }
    }

    /// The name of an anchor: ASCII letters, digits, `_` and `-`.
    private static func name(_ bytes: UnsafeMutablePointer<yaml_char_t>?) -> String? {
        bytes.map { String(cString: $0) }
    }

    /// Why the parser stopped.
    private var error: YAMLError {
        let failed = parser.pointee
        let problem = failed.problem.map { String(cString: $0) } ?? "unknown error"
        switch failed.error {
        case YAML_MEMORY_ERROR: return .outOfMemory
        case YAML_READER_ERROR: return .character(problem: problem, offset: failed.problem_offset)
        default:
            return .syntax(
                context: failed.context.map { String(cString: $0) }, problem: problem,
                line: Int(failed.problem_mark.line) + 1,
                column: Int(failed.problem_mark.column) + 1)
        }
    }
}

/// Why a text cannot be read as YAML, in libyaml's words.
enum YAMLError: Error {
    case outOfMemory
    /// A character that YAML does not allow, so many bytes from the beginning.
    case character(problem: String, offset: Int)
    /// Tokens that make no sense. The context, if any, is what was being read. Line and column
    /// count from 1.
    case syntax(context: String?, problem: String, line: Int, column: Int)
}

/// A format in which a body represents a value.
public enum DocumentFormat: String, Sendable, CaseIterable {
    /// JSON (RFC 8259).
    case json
    /// XML 1.0.
    case xml
    /// A property list, XML or binary.
    case plist
    /// `application/x-www-form-urlencoded`.
    case form
    /// `multipart/form-data`.
    case multipart
}

/// A position in a document.
public struct DocumentLocation: Sendable, Equatable, CustomStringConvertible {
    /// The byte offset, counted from 0.
    public var offset: Int
    /// The line, counted from 1; `nil` in a document without lines (a binary property list).
    public var line: Int?
    /// The byte within the line, counted from 1.
    public var column: Int?

    /// Creates a position that is already known; see the properties.
    public init(offset: Int, line: Int? = nil, column: Int? = nil) {
        self.offset = offset
        self.line = line
        self.column = column
    }

    /// Finds the position of a byte in a text whose lines end with LF.
    public init(offset: Int, in text: UnsafeRawBufferPointer) {
        let offset = min(offset, text.count)
        var line = 1
        var start = 0
        for (index, byte) in text.prefix(offset).enumerated() where byte == 0x0A {
            line += 1
            start = index + 1
        }
        self.init(offset: offset, line: line, column: offset - start + 1)
    }

    public var description: String {
        if let line, let column { "line \(line), column \(column)" } else { "byte \(offset)" }
    }
}

/// Why a document could not be read, or a value could not be written.
public struct DocumentError: Error, Sendable, Equatable, CustomStringConvertible {
    /// What is wrong.
    public enum Reason: Sendable, Equatable {
        /// It violates the rules of its format; the text describes how.
        case malformed(String)
        /// It is not in a supported encoding: UTF-8, and for XML also UTF-16.
        case encoding
        /// It exceeds the maximum size in bytes.
        case tooLarge(maximum: Int)
        /// The output would exceed the maximum size in bytes.
        case outputTooLarge(maximum: Int)
        /// Arrays, dictionaries or elements are nested more deeply than allowed.
        case tooDeep(maximum: Int)
        /// It has more values than allowed; a value that is referred to repeatedly counts each
        /// time.
        case tooManyValues(maximum: Int)
        /// A number has more digits than allowed, or is outside the range of the format.
        case numberOutOfRange(String)
        /// A name occurs twice in a dictionary.
        case duplicateKey(String)
        /// XML that declares entities, or refers to something external.
        case entity(String)
        /// The format cannot represent this value; the text names the kind of value.
        case unrepresentable(String)
        /// There is not enough memory.
        case memory
    }

    /// The format that was read or written.
    public var format: DocumentFormat
    /// What is wrong.
    public var reason: Reason
    /// `nil` if a value was being written, which has only a path.
    public var location: DocumentLocation?
    /// The names and indices that lead to the value, for example `orders[3].price`; empty at the
    /// root.
    public var path: String

    /// Creates an error; see the properties.
    public init(
        _ format: DocumentFormat, _ reason: Reason, at location: DocumentLocation? = nil,
        path: String = ""
    ) {
        self.format = format
        self.reason = reason
        self.location = location
        self.path = path
    }

    public var description: String {
        var text = "\(format.rawValue): \(reason.text)"
        if let location { text += " at \(location)" }
        if !path.isEmpty { text += " (\(path))" }
        // Names come from whoever wrote the document, and this is written to logs and terminals.
        return String(
            String.UnicodeScalarView(
                text.unicodeScalars.map {
                    $0.properties.generalCategory == .control ? "\u{FFFD}" : $0
                }))
    }
}

extension DocumentError.Reason {
    /// The reason in words.
    public var text: String {
        switch self {
        case .malformed(let what): what
        case .encoding: "the text is in an unsupported encoding"
        case .tooLarge(let maximum): "more than \(maximum) bytes"
        case .outputTooLarge(let maximum): "the result has more than \(maximum) bytes"
        case .tooDeep(let maximum): "nested deeper than \(maximum)"
        case .tooManyValues(let maximum): "more than \(maximum) values"
        case .numberOutOfRange(let number): "the number \(number.prefix(40)) is out of range"
        case .duplicateKey(let key): "duplicate name \"\(key.prefix(40))\""
        case .entity(let what): "\(what), which is never expanded"
        case .unrepresentable(let what): "\(what) cannot be represented in this format"
        case .memory: "there is not enough memory"
        }
    }

    /// The reason as a label for metrics and logs.
    public var label: String {
        switch self {
        case .malformed: "malformed"
        case .encoding: "encoding"
        case .tooLarge: "too-large"
        case .outputTooLarge: "output-too-large"
        case .tooDeep: "too-deep"
        case .tooManyValues: "too-many-values"
        case .numberOutOfRange: "number-out-of-range"
        case .duplicateKey: "duplicate-key"
        case .entity: "entity"
        case .unrepresentable: "unrepresentable"
        case .memory: "memory"
        }
    }
}

/// A format in which a body says a value.
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

/// Where in a document something is.
public struct DocumentPlace: Sendable, Equatable, CustomStringConvertible {
    /// The byte, counted from 0.
    public var offset: Int
    /// The line, counted from 1; nil in a document that has no lines (a binary property list).
    public var line: Int?
    /// The byte within the line, counted from 1.
    public var column: Int?

    /// A place that is known already; see the properties.
    public init(offset: Int, line: Int? = nil, column: Int? = nil) {
        self.offset = offset
        self.line = line
        self.column = column
    }

    /// The place of a byte of a text: lines end with LF.
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

/// Why a document was not read, or a value not written.
public struct DocumentError: Error, Sendable, Equatable, CustomStringConvertible {
    /// What is wrong.
    public enum Reason: Sendable, Equatable {
        /// It breaks the rules of its format; the text says which.
        case malformed(String)
        /// It is not in an encoding that is read: UTF-8, and for XML UTF-16.
        case encoding
        /// It has more bytes than it may have.
        case tooLarge(maximum: Int)
        /// What was made of it would have more bytes than it may have.
        case outputTooLarge(maximum: Int)
        /// More arrays, dictionaries or elements within one another than there may be.
        case tooDeep(maximum: Int)
        /// More values than there may be, those that are referred to more than once each time.
        case tooManyValues(maximum: Int)
        /// A number with more digits than it may have, or outside of what the format can say.
        case numberOutOfRange(String)
        /// A name is in a dictionary twice.
        case duplicateKey(String)
        /// XML that declares entities, or refers to what is elsewhere.
        case entity(String)
        /// The format has no way to say this value; the text says what kind of value it is.
        case unrepresentable(String)
        /// There is no memory for it.
        case memory
    }

    /// The format that was read or written.
    public var format: DocumentFormat
    /// What is wrong.
    public var reason: Reason
    /// Nil where a value is written, which has a path only.
    public var place: DocumentPlace?
    /// The names and indexes that lead to the value, as in `orders[3].price`; empty at the root.
    public var path: String

    /// An error of these parts; see the properties.
    public init(
        _ format: DocumentFormat, _ reason: Reason, at place: DocumentPlace? = nil,
        path: String = ""
    ) {
        self.format = format
        self.reason = reason
        self.place = place
        self.path = path
    }

    public var description: String {
        var text = "\(format.rawValue): \(reason.text)"
        if let place { text += " at \(place)" }
        if !path.isEmpty { text += " (\(path))" }
        // Names come from whoever wrote the document, and this goes to logs and terminals.
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
        case .encoding: "the text is not in an encoding that is read"
        case .tooLarge(let maximum): "more than \(maximum) bytes"
        case .outputTooLarge(let maximum): "the result has more than \(maximum) bytes"
        case .tooDeep(let maximum): "nested deeper than \(maximum)"
        case .tooManyValues(let maximum): "more than \(maximum) values"
        case .numberOutOfRange(let number): "the number \(number.prefix(40)) is out of range"
        case .duplicateKey(let key): "the name \"\(key.prefix(40))\" is there twice"
        case .entity(let what): "\(what), which is never expanded"
        case .unrepresentable(let what): "\(what) cannot be said in this format"
        case .memory: "there is no memory for it"
        }
    }

    /// The reason as a label of metrics and logs.
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

/// A value of a document, whatever its format.
public enum DocumentValue: Sendable, Equatable {
    /// Null.
    case null
    /// A Boolean.
    case boolean(Bool)
    /// A number, with all its digits.
    case number(DocumentNumber)
    /// A string.
    case string(String)
    /// Binary data.
    case data([UInt8])
    /// Seconds since 1970-01-01T00:00:00Z.
    case date(Double)
    /// Values in order.
    case array([DocumentValue])
    /// Members in order.
    case dictionary(DocumentDictionary)

    /// The kind of value, as errors call it.
    public var kind: String {
        switch self {
        case .null: "null"
        case .boolean: "a Boolean"
        case .number: "a number"
        case .string: "a string"
        case .data: "data"
        case .date: "a date"
        case .array: "an array"
        case .dictionary: "a dictionary"
        }
    }

    /// The value for a key; `nil` if there is none, or this is not a dictionary.
    public subscript(key: String) -> DocumentValue? {
        guard case .dictionary(let dictionary) = self else { return nil }
        return dictionary[key]
    }

    /// The value without null: neither as a member of a dictionary nor as an element of an array,
    /// at any depth. Null itself stays, because nothing else could represent it.
    public var removingNulls: DocumentValue {
        switch self {
        case .array(let values):
            return .array(values.filter { $0 != .null }.map(\.removingNulls))
        case .dictionary(let dictionary):
            return .dictionary(
                DocumentDictionary(
                    members: dictionary.members.filter { $0.value != .null }
                        .map { .init(key: $0.key, value: $0.value.removingNulls) }))
        default: return self
        }
    }

    /// Passes the value to a sink, as the events of a document.
    public func replay(into sink: inout some DocumentSink) throws(DocumentError) {
        switch self {
        case .null: try sink.null()
        case .boolean(let value): try sink.boolean(value)
        case .number(let number):
            try number.text.withBytes { bytes throws(DocumentError) in try sink.number(bytes) }
        case .string(let text):
            try text.withBytes { bytes throws(DocumentError) in try sink.string(bytes) }
        case .data(let data):
            try data.withBytes { bytes throws(DocumentError) in try sink.data(bytes) }
        case .date(let seconds): try sink.date(seconds)
        case .array(let values):
            try sink.beginArray()
            for value in values { try value.replay(into: &sink) }
            try sink.endArray()
        case .dictionary(let dictionary):
            try sink.beginDictionary()
            for member in dictionary.members {
                try member.key.withBytes { bytes throws(DocumentError) in try sink.key(bytes) }
                try member.value.replay(into: &sink)
            }
            try sink.endDictionary()
        }
    }
}

extension DocumentValue: CustomStringConvertible {
    /// The value as JSON, whatever its size; data is in base64, a date in RFC 3339 format. A date
    /// outside the years 0000 to 9999 is its number of seconds.
    public var description: String {
        let limits = DocumentLimits(depth: .max, output: .max)
        guard let bytes = try? JSONWriter.bytes(of: self, limits: limits) else {
            // Nothing else is refused without limits.
            return withNumbersForDates.description
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private var withNumbersForDates: DocumentValue {
        switch self {
        case .date(let seconds) where DateText.text(seconds) == nil:
            return DocumentNumber(seconds).map { .number($0) } ?? .null
        case .array(let values): return .array(values.map(\.withNumbersForDates))
        case .dictionary(let dictionary):
            return .dictionary(
                DocumentDictionary(
                    members: dictionary.members.map {
                        .init(key: $0.key, value: $0.value.withNumbersForDates)
                    }))
        default: return self
        }
    }
}

extension DocumentDictionary: CustomStringConvertible {
    /// The dictionary as JSON; see ``DocumentValue/description``.
    public var description: String { DocumentValue.dictionary(self).description }
}

extension DocumentNumber: CustomStringConvertible {
    /// The number's text.
    public var description: String { text }
}

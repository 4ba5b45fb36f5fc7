public import Documents

/// Parameters of a request: a tree of values as in ``DocumentValue``, and sets, which say their
/// values in no order of their own.
public indirect enum RequestParameters: Sendable, Equatable {
    case null
    case boolean(Bool)
    case number(DocumentNumber)
    case string(String)
    case data([UInt8])
    /// Seconds since 1970-01-01T00:00:00Z.
    case date(Double)
    case array([RequestParameters])
    case set([RequestParameters])
    case dictionary([Member])

    public struct Member: Sendable, Equatable {
        public var key: String
        public var value: RequestParameters

        public init(_ key: String, _ value: RequestParameters) {
            self.key = key
            self.value = value
        }
    }

    public init(_ value: DocumentValue) {
        switch value {
        case .null: self = .null
        case .boolean(let value): self = .boolean(value)
        case .number(let number): self = .number(number)
        case .string(let text): self = .string(text)
        case .data(let bytes): self = .data(bytes)
        case .date(let seconds): self = .date(seconds)
        case .array(let values): self = .array(values.map(RequestParameters.init))
        case .dictionary(let dictionary):
            self = .dictionary(
                dictionary.members.map { Member($0.key, RequestParameters($0.value)) })
        }
    }

    /// As a document, in which a set is an array of its values, sorted by what queries say of them.
    /// Of members with the same key the last counts.
    public var document: DocumentValue {
        switch self {
        case .null: return .null
        case .boolean(let value): return .boolean(value)
        case .number(let number): return .number(number)
        case .string(let text): return .string(text)
        case .data(let bytes): return .data(bytes)
        case .date(let seconds): return .date(seconds)
        case .array(let values): return .array(values.map(\.document))
        case .set(let values): return .array(QueryPairs.sorted(values).map(\.document))
        case .dictionary(let members):
            var dictionary = DocumentDictionary()
            for member in members { dictionary[member.key] = member.value.document }
            return .dictionary(dictionary)
        }
    }
}

extension RequestParameters: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, ExpressibleByBooleanLiteral, ExpressibleByNilLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    public init(stringLiteral value: String) { self = .string(value) }
    public init(integerLiteral value: Int) { self = .number(DocumentNumber(value)) }
    public init(booleanLiteral value: Bool) { self = .boolean(value) }
    public init(nilLiteral: ()) { self = .null }
    public init(arrayLiteral elements: RequestParameters...) { self = .array(elements) }

    /// A literal is finite unless it is beyond what a double can say, and then it is null.
    public init(floatLiteral value: Double) {
        self = DocumentNumber(value).map(RequestParameters.number) ?? .null
    }

    public init(dictionaryLiteral elements: (String, RequestParameters)...) {
        self = .dictionary(elements.map { Member($0.0, $0.1) })
    }
}

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

    /// As a document, in which a set is an array of its values. Of members with the same key the
    /// last counts.
    public var document: DocumentValue {
        switch self {
        case .null: return .null
        case .boolean(let value): return .boolean(value)
        case .number(let number): return .number(number)
        case .string(let text): return .string(text)
        case .data(let bytes): return .data(bytes)
        case .date(let seconds): return .date(seconds)
        case .array(let values), .set(let values): return .array(values.map(\.document))
        case .dictionary(let members):
            var dictionary = DocumentDictionary()
            for member in members { dictionary[member.key] = member.value.document }
            return .dictionary(dictionary)
        }
    }

    /// The pairs of a query or form, by the rules of ``QueryString``. Parameters that are no
    /// dictionary have no names, and are an error.
    public func pairs() throws(DocumentError) -> [QueryString.Pair] {
        var sets: Set<String> = []
        collectSets(at: "", into: &sets)
        return try QueryString.pairs(document, sets: sets)
    }

    /// The query that says them, without `?`.
    public func query() throws(DocumentError) -> String {
        var sets: Set<String> = []
        collectSets(at: "", into: &sets)
        return try QueryString.encode(document, sets: sets)
    }

    /// The names, as in `k[n]`, of all sets.
    private func collectSets(at name: String, into sets: inout Set<String>) {
        switch self {
        case .set: sets.insert(name)
        case .array(let values):
            for value in values { value.collectSets(at: name + "[]", into: &sets) }
        case .dictionary(let members):
            for member in members {
                let inner = name.isEmpty ? member.key : "\(name)[\(member.key)]"
                member.value.collectSets(at: inner, into: &sets)
            }
        default: break
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

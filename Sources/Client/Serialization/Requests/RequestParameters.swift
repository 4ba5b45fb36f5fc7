public import Documents

/// Parameters of a request: a tree of values as in ``DocumentValue``, and sets, which say their
/// values in no order of their own.
public indirect enum RequestParameters: Sendable, Equatable {
    /// Null: a bare key in a query.
    case null
    /// A truth value.
    case boolean(Bool)
    /// A number, digit by digit.
    case number(DocumentNumber)
    /// An infinity, or what is no number: an error where it is to be sent, whatever the format.
    case notFinite(Double)
    /// A string.
    case string(String)
    /// Bytes that are no text.
    case data([UInt8])
    /// Seconds since 1970-01-01T00:00:00Z.
    case date(Double)
    /// Values in their order.
    case array([RequestParameters])
    /// Values whose order says nothing; they are written sorted.
    case set([RequestParameters])
    /// Members, which a query has sorted by their keys.
    case dictionary([Member])

    /// A key and its value.
    public struct Member: Sendable, Equatable {
        /// The key, not escaped.
        public var key: String
        /// The value under the key.
        public var value: RequestParameters

        /// A member of these two.
        public init(_ key: String, _ value: RequestParameters) {
            self.key = key
            self.value = value
        }
    }

    /// A string.
    public init(_ value: String) { self = .string(value) }

    /// A truth value.
    public init(_ value: Bool) { self = .boolean(value) }

    /// A number.
    public init(_ value: some BinaryInteger) { self = .number(DocumentNumber(value)) }

    /// A number; see ``notFinite(_:)``.
    public init(_ value: Double) {
        self = DocumentNumber(value).map(RequestParameters.number) ?? .notFinite(value)
    }

    /// The same value as parameters; there are no sets in it.
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

    /// The value under a key; nil where there is none, or this is no dictionary. Of members with
    /// the same key it is the last.
    ///
    ///     var parameters: RequestParameters = ["name": "Ada"]
    ///     if let page { parameters["page"] = RequestParameters(page) }
    ///
    /// Set to nil, the members are taken out; a new one comes last. Null becomes a dictionary by
    /// its first member. To set one of anything else is a programming error, which stops the
    /// process.
    public subscript(key: String) -> RequestParameters? {
        get {
            guard case .dictionary(let members) = self else { return nil }
            return members.last { $0.key == key }?.value
        }
        set {
            var members: [Member] = []
            switch self {
            case .dictionary(let own): members = own
            case .null: break
            default: preconditionFailure("parameters that are no dictionary have no member \(key)")
            }
            let place = members.firstIndex { $0.key == key }
            if let place {
                members[place...].removeAll { $0.key == key }
            }
            if let newValue {
                members.insert(Member(key, newValue), at: place ?? members.endIndex)
            } else if place == nil {
                return
            }
            self = .dictionary(members)
        }
    }

    /// As a document, in which a set is an array of its values, and null stands for a number that
    /// is not finite. Of members with the same key the last counts.
    public var document: DocumentValue {
        switch self {
        case .null, .notFinite: return .null
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
    ///
    /// - Parameter arrays: How the names of elements are written.
    public func pairs(
        arrays: FormArrayStyle = .brackets
    ) throws(DocumentError) -> [QueryString.Pair] {
        let document = try document(in: .form)
        var sets: Set<String> = []
        collectSets(at: "", arrays, into: &sets)
        return try QueryString.pairs(document, sets: sets, arrays: arrays)
    }

    /// The query that says them, without `?`.
    ///
    /// - Parameter arrays: How the names of elements are written.
    public func query(arrays: FormArrayStyle = .brackets) throws(DocumentError) -> String {
        let document = try document(in: .form)
        var sets: Set<String> = []
        collectSets(at: "", arrays, into: &sets)
        return try QueryString.encode(document, sets: sets, arrays: arrays)
    }

    /// As a document of a format that can say all of it.
    ///
    /// - Throws: ``DocumentError/Reason/unrepresentable(_:)`` with the path of the first value that
    ///   the format has no way to say: in any, a number that is not finite; in JSON data, dates and
    ///   sets; in property lists sets.
    func document(in format: DocumentFormat) throws(DocumentError) -> DocumentValue {
        try check(format, at: DocumentPath())
        return document
    }

    private func check(
        _ format: DocumentFormat, at path: DocumentPath
    ) throws(DocumentError) {
        if let name = nameOfWhatCannotBeSaid(in: format) {
            throw DocumentError(format, .unrepresentable(name), path: path.text)
        }
        switch self {
        case .array(let values), .set(let values):
            for (index, value) in values.enumerated() {
                var inner = path
                inner.append(index)
                try value.check(format, at: inner)
            }
        case .dictionary(let members):
            for member in members {
                var inner = path
                inner.append(name: member.key)
                try member.value.check(format, at: inner)
            }
        default: break
        }
    }

    private func nameOfWhatCannotBeSaid(in format: DocumentFormat) -> String? {
        switch (self, format) {
        case (.notFinite(let number), _): "the number \(number)"
        case (.data, .json): "data"
        case (.date, .json): "a date"
        case (.set, .json), (.set, .plist): "a set"
        default: nil
        }
    }

    /// The names, as in `k[n]`, of all sets.
    private func collectSets(
        at name: String, _ arrays: FormArrayStyle, into sets: inout Set<String>
    ) {
        switch self {
        case .set: sets.insert(name)
        case .array(let values):
            for (index, value) in values.enumerated() {
                let key = arrays == .indices ? "\(index)" : ""
                value.collectSets(at: "\(name)[\(key)]", arrays, into: &sets)
            }
        case .dictionary(let members):
            for member in members {
                let inner = name.isEmpty ? member.key : "\(name)[\(member.key)]"
                member.value.collectSets(at: inner, arrays, into: &sets)
            }
        default: break
        }
    }
}

extension RequestParameters: ExpressibleByStringInterpolation, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, ExpressibleByBooleanLiteral, ExpressibleByNilLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    public init(stringLiteral value: String) { self = .string(value) }
    public init(integerLiteral value: Int) { self = .number(DocumentNumber(value)) }
    public init(booleanLiteral value: Bool) { self = .boolean(value) }
    public init(nilLiteral: ()) { self = .null }
    public init(arrayLiteral elements: RequestParameters...) { self = .array(elements) }

    public init(floatLiteral value: Double) { self.init(value) }

    public init(dictionaryLiteral elements: (String, RequestParameters)...) {
        self = .dictionary(elements.map { Member($0.0, $0.1) })
    }
}

extension RequestParameters: CustomStringConvertible {
    /// As JSON; see ``DocumentValue/description``. Of a set it is an array, of a number that is not
    /// finite null.
    public var description: String { document.description }
}

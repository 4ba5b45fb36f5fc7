public import Documents

/// The parameters of a request: a tree of values as in ``DocumentValue``, and also sets, whose
/// values have no order.
public indirect enum RequestParameters: Sendable, Equatable {
    /// Null: a key without a value in a query.
    case null
    /// A Boolean.
    case boolean(Bool)
    /// A number with all its digits.
    case number(DocumentNumber)
    /// Infinity or NaN. Sending it is an error in every format.
    case notFinite(Double)
    /// A string.
    case string(String)
    /// Binary data.
    case data([UInt8])
    /// A date in seconds since 1970-01-01T00:00:00Z.
    case date(Double)
    /// Values in order.
    case array([RequestParameters])
    /// Values without an order. They are sorted when they are written.
    case set([RequestParameters])
    /// Members. In a query they are sorted by their keys.
    case dictionary([Member])

    /// A key with its value.
    public struct Member: Sendable, Equatable {
        /// The key, not escaped.
        public var key: String
        /// The value.
        public var value: RequestParameters

        /// Creates a member.
        public init(_ key: String, _ value: RequestParameters) {
            self.key = key
            self.value = value
        }
    }

    /// Creates a string.
    public init(_ value: String) { self = .string(value) }

    /// Creates a Boolean.
    public init(_ value: Bool) { self = .boolean(value) }

    /// Creates a number.
    public init(_ value: some BinaryInteger) { self = .number(DocumentNumber(value)) }

    /// Creates a number, or ``notFinite(_:)``.
    public init(_ value: Double) {
        self = DocumentNumber(value).map(RequestParameters.number) ?? .notFinite(value)
    }

    /// Creates parameters with the same value as a document. They contain no sets.
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

    /// The value for a key, or `nil` if there is none or these parameters are not a dictionary. If
    /// several members have the same key, it is the value of the last one.
    ///
    ///     var parameters: RequestParameters = ["name": "Ada"]
    ///     if let page { parameters["page"] = RequestParameters(page) }
    ///
    /// Assigning `nil` removes all members with the key; a new member is added at the end.
    /// Assigning to null turns it into a dictionary. Assigning to anything else is a programming
    /// error, which stops the process.
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
            default: preconditionFailure("parameters that are not a dictionary: \(key)")
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

    /// The parameters as a document: a set becomes an array of its values, and a number that is not
    /// finite becomes null. If several members have the same key, the last one is used.
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

    /// Returns the pairs of a query or form, according to the rules of ``QueryString``. Throws if
    /// the parameters are not a dictionary, because their values have no names.
    ///
    /// - Parameter arrays: How the names of array elements are written.
    public func pairs(
        arrays: FormArrayStyle = .brackets
    ) throws(DocumentError) -> [QueryString.Pair] {
        let document = try document(in: .form)
        var sets: Set<String> = []
        collectSets(at: "", arrays, into: &sets)
        return try QueryString.pairs(document, sets: sets, arrays: arrays)
    }

    /// Returns the parameters as a query without `?`.
    ///
    /// - Parameter arrays: How the names of array elements are written.
    public func query(arrays: FormArrayStyle = .brackets) throws(DocumentError) -> String {
        let document = try document(in: .form)
        var sets: Set<String> = []
        collectSets(at: "", arrays, into: &sets)
        return try QueryString.encode(document, sets: sets, arrays: arrays)
    }

    /// Returns the parameters as a document that a format can represent.
    ///
    /// - Throws: ``DocumentError/Reason/unrepresentable(_:)`` with the path of the first value that
    ///   the format cannot represent: in any format, a number that is not finite; in JSON, also
    ///   data, dates and sets; in property lists, also sets.
    func document(in format: DocumentFormat) throws(DocumentError) -> DocumentValue {
        try check(format, at: DocumentPath())
        return document
    }

    private func check(
        _ format: DocumentFormat, at path: DocumentPath
    ) throws(DocumentError) {
        if let name = nameOfUnrepresentable(in: format) {
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

    private func nameOfUnrepresentable(in format: DocumentFormat) -> String? {
        switch (self, format) {
        case (.notFinite(let number), _): "the number \(number)"
        case (.data, .json): "data"
        case (.date, .json): "a date"
        case (.set, .json), (.set, .plist): "a set"
        default: nil
        }
    }

    /// The names of all sets, as in `k[n]`.
    private func collectSets(
        at name: String, _ arrays: FormArrayStyle, into sets: inout Set<String>
    ) {
        switch self {
        case .set: sets.insert(name)
        case .array(let values):
            for (index, value) in values.enumerated() {
                switch (arrays, value) {
                case (.brackets, _): value.collectSets(at: "\(name)[]", arrays, into: &sets)
                case (.indices, _):
                    value.collectSets(at: "\(name)[\(index)]", arrays, into: &sets)
                // It has the array's own name, and is written like a part of the array.
                case (.repeated, .set): break
                case (.repeated, _): value.collectSets(at: name, arrays, into: &sets)
                }
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
    /// The parameters as JSON; see ``DocumentValue/description``. Sets are written as arrays, and
    /// numbers that are not finite as null.
    public var description: String { document.description }
}

public import Documents

// Values as literals: `let value: DocumentValue = ["name": "Ada", "tags": ["a", "b"], "age": 36]`.
// Null is `.null`: there is no `nil` literal, so that a missing member (`value["x"] == nil`)
// is not mistaken for one that is null.

extension DocumentValue: ExpressibleByStringLiteral {
    /// Creates a string.
    public init(stringLiteral value: String) { self = .string(value) }
}

extension DocumentValue: ExpressibleByStringInterpolation {}

extension DocumentValue: ExpressibleByBooleanLiteral {
    /// Creates a Boolean.
    public init(booleanLiteral value: Bool) { self = .boolean(value) }
}

extension DocumentValue: ExpressibleByIntegerLiteral {
    /// Creates a number.
    public init(integerLiteral value: Int) { self = .number(DocumentNumber(value)) }
}

extension DocumentValue: ExpressibleByFloatLiteral {
    /// Creates a number.
    public init(floatLiteral value: Double) {
        self = DocumentNumber(value).map { .number($0) } ?? .null
    }
}

extension DocumentValue: ExpressibleByArrayLiteral {
    /// Creates an array.
    public init(arrayLiteral elements: DocumentValue...) { self = .array(elements) }
}

extension DocumentValue: ExpressibleByDictionaryLiteral {
    /// Creates a dictionary. Of members with the same key, the last one counts.
    public init(dictionaryLiteral elements: (String, DocumentValue)...) {
        var dictionary = DocumentDictionary()
        for (key, value) in elements { dictionary[key] = value }
        self = .dictionary(dictionary)
    }
}

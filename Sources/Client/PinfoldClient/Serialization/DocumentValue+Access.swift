public import Documents

// Reading values: `value["users"]?[0]?["name"]?.stringValue`.
extension DocumentValue {
    /// The element at an index, or `nil` if there is none, or this is not an array. A negative
    /// index counts from the end: -1 is the last element.
    public subscript(index: Int) -> DocumentValue? {
        guard case .array(let values) = self else { return nil }
        let position = index < 0 ? values.count + index : index
        return values.indices.contains(position) ? values[position] : nil
    }

    /// The string, or `nil` if this is not one.
    public var stringValue: String? { if case .string(let text) = self { text } else { nil } }

    /// The Boolean, or `nil` if this is not one.
    public var booleanValue: Bool? { if case .boolean(let value) = self { value } else { nil } }

    /// The number as an integer, or `nil` if this is not a number, not an integer, or too large.
    public var integerValue: Int? {
        guard case .number(let number) = self else { return nil }
        return number.integer.flatMap { Int(exactly: $0) }
    }

    /// The number, or `nil` if this is not one.
    public var doubleValue: Double? {
        if case .number(let number) = self { number.double } else { nil }
    }

    /// The elements, or `nil` if this is not an array.
    public var arrayValue: [DocumentValue]? {
        if case .array(let values) = self { values } else { nil }
    }

    /// The members, or `nil` if this is not a dictionary.
    public var dictionaryValue: DocumentDictionary? {
        if case .dictionary(let dictionary) = self { dictionary } else { nil }
    }

    /// Whether this is null.
    public var isNull: Bool { self == .null }
}

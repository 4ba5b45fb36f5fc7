/// A reply, or a part of one, that is kept.
package enum RESPValue: Sendable, Hashable {
    case null
    case boolean(Bool)
    case integer(Int64)
    case double(Double)
    /// A number of any size, in decimal.
    case bigNumber([UInt8])
    case simple([UInt8])
    case bulk([UInt8])
    /// - Parameter format: three bytes.
    case verbatim(format: [UInt8], [UInt8])
    /// A simple error or a bulk one; the first word is its code.
    case error([UInt8])
    case array([RESPValue])
    case set([RESPValue])
    case map([RESPEntry])

    /// The bytes of a string of any kind; `nil` for everything else.
    package var bytes: [UInt8]? {
        switch self {
        case .simple(let bytes), .bulk(let bytes), .verbatim(_, let bytes): bytes
        case .null, .boolean, .integer, .double, .bigNumber, .error, .array, .set, .map: nil
        }
    }

    /// A string as text; what is not UTF-8 is replaced.
    package var text: String? { bytes.map { String(decoding: $0, as: UTF8.self) } }

    /// An integer, or a string that is one: some replies write their numbers so.
    package var integer: Int64? {
        switch self {
        case .integer(let number): number
        case .simple(let bytes), .bulk(let bytes): RESPNumber.integer(bytes.span)
        case .null, .boolean, .double, .bigNumber, .verbatim, .error, .array, .set, .map: nil
        }
    }

    /// The elements of an array or a set.
    package var elements: [RESPValue]? {
        switch self {
        case .array(let elements), .set(let elements): elements
        case .null, .boolean, .integer, .double, .bigNumber, .simple, .bulk, .verbatim, .error,
            .map:
            nil
        }
    }

    /// The entries of a map, or of an array of keys and values, which is what RESP2 has for one.
    package var entries: [RESPEntry]? {
        switch self {
        case .map(let entries): return entries
        case .array(let elements):
            guard elements.count.isMultiple(of: 2) else { return nil }
            return stride(from: 0, to: elements.count, by: 2).map {
                RESPEntry(key: elements[$0], value: elements[$0 + 1])
            }
        case .null, .boolean, .integer, .double, .bigNumber, .simple, .bulk, .verbatim, .error,
            .set:
            return nil
        }
    }

    /// The value of the first entry with this key; `nil` if there is none.
    package func value(of key: String) -> RESPValue? {
        entries?.first { $0.key.bytes.map { $0.elementsEqual(key.utf8) } ?? false }?.value
    }

    /// Whether it is `OK`.
    package var isOK: Bool { bytes == [UInt8(ascii: "O"), UInt8(ascii: "K")] }
}

/// An entry of a map. Keys may be any values, and may occur again.
package struct RESPEntry: Sendable, Hashable {
    package let key: RESPValue
    package let value: RESPValue

    package init(key: RESPValue, value: RESPValue) {
        self.key = key
        self.value = value
    }
}

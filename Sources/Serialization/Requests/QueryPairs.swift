import Documents

/// Parameters as the pairs of a query or form, by AFNetworking's rules: the keys of a dictionary are
/// sorted, a member is `k[n]`, an element of an array `k[]` in its order, and of a set `k`, sorted;
/// null is a field without a value.
public struct QueryPairs: Sendable, Equatable {
    public struct Pair: Sendable, Equatable {
        public var field: String
        /// Nil for null, which is written as the field alone.
        public var value: Content?
    }

    public enum Content: Sendable, Equatable {
        case text(String)
        case data([UInt8])
    }

    public private(set) var pairs: [Pair] = []

    /// The pairs of parameters. Parameters that are no dictionary have no names, and no pairs.
    public init(_ parameters: RequestParameters) {
        if case .dictionary = parameters { add(parameters, field: nil) }
    }

    private mutating func add(_ value: RequestParameters, field: String?) {
        switch value {
        case .dictionary(let members):
            for member in members.sorted(by: { Self.precedes($0.key, $1.key) }) {
                add(member.value, field: field.map { "\($0)[\(member.key)]" } ?? member.key)
            }
        case .array(let values):
            for value in values { add(value, field: "\(field ?? "")[]") }
        case .set(let values):
            for value in Self.sorted(values) { add(value, field: field) }
        case .null: pairs.append(Pair(field: field ?? "", value: nil))
        case .data(let bytes): pairs.append(Pair(field: field ?? "", value: .data(bytes)))
        default:
            pairs.append(Pair(field: field ?? "", value: .text(Self.text(of: value))))
        }
    }

    /// What a query says of a value that is no collection. Truth values are 1 and 0.
    private static func text(of value: RequestParameters) -> String {
        switch value {
        case .boolean(let value): value ? "1" : "0"
        case .number(let number): number.text
        case .string(let text): text
        case .date(let seconds): DocumentText.date(seconds)
        default: ""
        }
    }

    static func sorted(_ values: [RequestParameters]) -> [RequestParameters] {
        values.map { (key: text(of: $0), value: $0) }
            .sorted { precedes($0.key, $1.key) }.map(\.value)
    }

    /// In the order of their code points, whatever the locale.
    private static func precedes(_ one: String, _ other: String) -> Bool {
        one.utf8.lexicographicallyPrecedes(other.utf8)
    }

    /// The pairs joined by `&`, escaped.
    public var query: String {
        pairs.map { pair in
            let field = PercentEncoding.escape(pair.field.utf8)
            switch pair.value {
            case nil: return field
            case .text(let text): return "\(field)=\(PercentEncoding.escape(text.utf8))"
            case .data(let bytes): return "\(field)=\(PercentEncoding.escape(bytes))"
            }
        }.joined(separator: "&")
    }
}

/// RFC 3986, section 2.1, as AFNetworking applies it to fields and values of queries.
public enum PercentEncoding {
    /// The bytes with all but unreserved characters, `/` and `?` escaped (RFC 3986, section 3.4,
    /// lets these two stand in a query). An escape that is there already is escaped again.
    public static func escape(_ bytes: some Sequence<UInt8>) -> String {
        var text: [UInt8] = []
        for byte in bytes {
            if isLiteral(byte) {
                text.append(byte)
            } else {
                text += [UInt8(ascii: "%"), digit(byte >> 4), digit(byte & 15)]
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    private static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
    }

    private static func isLiteral(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "_"), UInt8(ascii: "~"), UInt8(ascii: "/"), UInt8(ascii: "?"):
            true
        default: false
        }
    }
}

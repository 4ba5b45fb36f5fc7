/// Query strings, by the rules of AFNetworking (`AFQueryStringFromParameters`).
///
/// Members come in the order of their keys, by UTF-16 code units. A dictionary's are `k[n]`, an
/// array's elements `k[]` in their order, a set's members `k` each, in the order of their texts.
/// Null is `k` alone; what is empty leaves nothing. True is `1` and false `0`, as `NSNumber`
/// describes them, a number its own text, data is in Base64, and a date by RFC 3339 in UTC.
///
/// All is escaped but letters and digits of ASCII, `-._~`, `/` and `?`: the brackets of names, too,
/// and a percent sign whatever follows it. Escapes are made byte by byte of the UTF-8, of whole
/// texts, so that no composed character is split.
public enum QueryString {
    /// What is said of one name.
    public struct Pair: Sendable, Equatable {
        /// As in `k[n]`, not escaped.
        public var name: String
        /// A scalar; null is said by the name alone.
        public var value: DocumentValue

        /// The value as text; nil for null.
        public var text: String? {
            switch value {
            case .boolean(let value): value ? "1" : "0"
            case .number(let number): number.text
            case .string(let text): text
            case .data(let bytes): Base64.text(bytes)
            case .date(let seconds): DateText.text(seconds)
            case .null, .array, .dictionary: nil
            }
        }
    }

    /// The names and values of a dictionary in their order.
    ///
    /// - Parameters:
    ///   - value: a dictionary.
    ///   - sets: the names, as in `k[n]`, whose arrays are sets. Their members have to be scalars.
    ///   - limits: of these `depth` and `values` hold here.
    /// - Throws: as ``encode(_:sets:limits:)``.
    public static func pairs(
        _ value: DocumentValue, sets: Set<String> = [], limits: DocumentLimits = .standard
    ) throws(DocumentError) -> [Pair] {
        var walk = PairWalk(sets: sets, limits: limits)
        try walk.walk(value)
        return walk.pairs
    }

    /// The query string of a dictionary, without `?`.
    ///
    /// - Parameters:
    ///   - value: a dictionary.
    ///   - sets: the names, as in `k[n]`, whose arrays are sets. Their members have to be scalars.
    ///   - limits: of these `depth`, `values` and `output` hold here.
    /// - Throws: a ``DocumentError`` with the name as its path; `unrepresentable` for what is no
    ///   dictionary, and for a date outside of the years 0000 to 9999.
    public static func encode(
        _ value: DocumentValue, sets: Set<String> = [], limits: DocumentLimits = .standard
    ) throws(DocumentError) -> String {
        var output: [UInt8] = []
        for (index, pair) in try pairs(value, sets: sets, limits: limits).enumerated() {
            if index > 0 { output.append(UInt8(ascii: "&")) }
            append(pair.name, to: &output)
            if let text = pair.text {
                output.append(UInt8(ascii: "="))
                append(text, to: &output)
            }
            guard output.count <= limits.output else {
                throw DocumentError(
                    .form, .outputTooLarge(maximum: limits.output), path: path(pair.name))
            }
        }
        return String(decoding: output, as: UTF8.self)
    }

    fileprivate static func path(_ name: String) -> String {
        var path = DocumentPath()
        path.append(name: name)
        return path.text
    }

    /// A text as it stands in a query string (`AFPercentEscapedStringFromString`).
    public static func escape(_ text: String) -> String {
        var output: [UInt8] = []
        append(text, to: &output)
        return String(decoding: output, as: UTF8.self)
    }

    private static let hexDigits = Array("0123456789ABCDEF".utf8)

    static func append(_ text: String, to output: inout [UInt8]) {
        for byte in text.utf8 {
            if isUnescaped(byte) {
                output.append(byte)
            } else {
                output.append(UInt8(ascii: "%"))
                output.append(hexDigits[Int(byte >> 4)])
                output.append(hexDigits[Int(byte & 15)])
            }
        }
    }

    /// RFC 3986: unreserved (section 2.3), and of what a query may have (section 3.4) `/` and `?`.
    private static func isUnescaped(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "_"), UInt8(ascii: "~"), UInt8(ascii: "/"), UInt8(ascii: "?"):
            true
        default: false
        }
    }
}

/// Walks a value without recursion, so that a deep one does not exhaust the stack.
private struct PairWalk {
    /// An array or dictionary under way.
    private struct Open {
        var children: [(name: String, value: DocumentValue)]
        var next = 0
    }

    private let sets: Set<String>
    private let limits: DocumentLimits
    private var open: [Open] = []
    private var values = 0
    private(set) var pairs: [QueryString.Pair] = []

    init(sets: Set<String>, limits: DocumentLimits) {
        self.sets = sets
        self.limits = limits
    }

    mutating func walk(_ value: DocumentValue) throws(DocumentError) {
        guard case .dictionary(let root) = value else {
            throw DocumentError(
                .form, .unrepresentable("\(value.kind) that is not in a dictionary"))
        }
        open.append(Open(children: Self.members(root, of: nil)))
        while let last = open.indices.last {
            let next = open[last].next
            guard next < open[last].children.count else {
                open.removeLast()
                continue
            }
            open[last].next += 1
            try add(open[last].children[next])
        }
    }

    private static func members(
        _ dictionary: DocumentDictionary, of name: String?
    ) -> [(name: String, value: DocumentValue)] {
        dictionary.members
            .sorted { $0.key.utf16.lexicographicallyPrecedes($1.key.utf16) }
            .map { member in
                (name.map { "\($0)[\(member.key)]" } ?? member.key, member.value)
            }
    }

    private mutating func add(
        _ child: (name: String, value: DocumentValue)
    ) throws(DocumentError) {
        values += 1
        guard values <= limits.values else {
            throw error(.tooManyValues(maximum: limits.values), child.name)
        }
        switch child.value {
        case .dictionary(let dictionary):
            try enter(Self.members(dictionary, of: child.name), child.name)
        case .array(let elements) where sets.contains(child.name):
            try addSet(elements, child.name)
        case .array(let elements):
            let name = child.name + "[]"
            try enter(elements.map { (name, $0) }, child.name)
        default:
            try add(child.value, as: child.name)
        }
    }

    private mutating func enter(
        _ children: [(name: String, value: DocumentValue)], _ name: String
    ) throws(DocumentError) {
        guard open.count < limits.depth else {
            throw error(.tooDeep(maximum: limits.depth), name)
        }
        open.append(Open(children: children))
    }

    private mutating func addSet(
        _ members: [DocumentValue], _ name: String
    ) throws(DocumentError) {
        for member in members { try check(member, of: name) }
        // Null is described as `<null>`, which is where it is sorted.
        let sorted = members.map { QueryString.Pair(name: name, value: $0) }
            .map { (order: $0.text ?? "<null>", pair: $0) }
            .sorted { $0.order.utf16.lexicographicallyPrecedes($1.order.utf16) }
        pairs += sorted.map(\.pair)
    }

    private mutating func add(_ value: DocumentValue, as name: String) throws(DocumentError) {
        try check(value, of: name)
        pairs.append(QueryString.Pair(name: name, value: value))
    }

    /// Whether a value is one that a pair can say.
    private func check(_ value: DocumentValue, of name: String) throws(DocumentError) {
        switch value {
        case .array, .dictionary: throw error(.unrepresentable("\(value.kind) in a set"), name)
        case .date(let seconds) where DateText.text(seconds) == nil:
            throw error(.unrepresentable("a date outside of the years 0000 to 9999"), name)
        default: break
        }
    }

    private func error(_ reason: DocumentError.Reason, _ name: String) -> DocumentError {
        DocumentError(.form, reason, path: QueryString.path(name))
    }
}

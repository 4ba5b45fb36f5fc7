import HTTPCore

/// Query strings, by the rules of AFNetworking (`AFQueryStringFromParameters`).
///
/// Members are sorted by key, comparing UTF-16 code units. A dictionary's members are `k[n]`, an
/// array's elements `k[]` in order (or with ``FormArrayStyle/indices``), and a set's members `k`
/// each, sorted by their texts. Null is `k` alone; empty containers are omitted. True is `1` and
/// false `0`, as `NSNumber` describes them; a number is its own text, data is in base64, and a date
/// is in UTC in RFC 3339 format.
///
/// Everything is escaped except ASCII letters and digits, `-._~`, `/` and `?`: also the brackets of
/// names, and a percent sign whatever follows it. Escapes are made byte by byte from the UTF-8 of
/// whole texts, so that no composed character is split.
public enum QueryString {
    /// A name and its value.
    public struct Pair: Sendable, Equatable {
        /// For example `k[n]`, not escaped.
        public var name: String
        /// A scalar; null is represented by the name alone.
        public var value: DocumentValue

        /// The value as text; `nil` for null.
        public var text: String? { QueryString.text(of: value) }
    }

    fileprivate static func text(of value: DocumentValue) -> String? {
        switch value {
        case .boolean(let value): value ? "1" : "0"
        case .number(let number): number.text
        case .string(let text): text
        case .data(let bytes): Base64.encode(bytes)
        case .date(let seconds): DateText.text(seconds)
        case .null, .array, .dictionary: nil
        }
    }

    /// The names and values of a dictionary in order.
    ///
    /// - Parameters:
    ///   - value: a dictionary.
    ///   - sets: the names, as in `k[n]`, whose arrays are sets. Their members must be scalars.
    ///   - arrays: how the names of elements are written.
    ///   - limits: of these `depth` and `values` apply, and `output` for the names.
    /// - Throws: as ``encode(_:sets:arrays:limits:)``.
    public static func pairs(
        _ value: DocumentValue, sets: Set<String> = [], arrays: FormArrayStyle = .brackets,
        limits: DocumentLimits = .standard
    ) throws(DocumentError) -> [Pair] {
        var walk = PairWalk(sets: sets, arrays: arrays, limits: limits)
        try walk.walk(value)
        return walk.pairs
    }

    /// The query string of a dictionary, without `?`.
    ///
    /// - Parameters:
    ///   - value: a dictionary.
    ///   - sets: the names, as in `k[n]`, whose arrays are sets. Their members must be scalars.
    ///   - arrays: how the names of elements are written.
    ///   - limits: of these `depth`, `values` and `output` apply.
    /// - Throws: a ``DocumentError`` with the name as its path; `unrepresentable` for anything but
    ///   a dictionary, and for a date outside the years 0000 to 9999.
    public static func encode(
        _ value: DocumentValue, sets: Set<String> = [], arrays: FormArrayStyle = .brackets,
        limits: DocumentLimits = .standard
    ) throws(DocumentError) -> String {
        var output: [UInt8] = []
        let pairs = try pairs(value, sets: sets, arrays: arrays, limits: limits)
        for (index, pair) in pairs.enumerated() {
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

    /// Escapes a text for a query string (`AFPercentEscapedStringFromString`).
    public static func escape(_ text: String) -> String {
        var output: [UInt8] = []
        append(text, to: &output)
        return String(decoding: output, as: UTF8.self)
    }

    static func append(_ text: String, to output: inout [UInt8]) {
        PercentCoding.append(text.utf8, to: &output, mayStand: isUnescaped)
    }

    /// RFC 3986: unreserved (§2.3), and of the characters allowed in a query (§3.4) `/` and `?`.
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

/// Walks a value without recursion, so that a deep one does not overflow the stack. Names are built
/// one at a time: all together they may be many times as long as the tree.
private struct PairWalk {
    /// An array or dictionary being processed.
    private struct Open {
        /// The key is `nil` for an element.
        var children: [(key: String?, value: DocumentValue)]
        /// The length of its own name in bytes.
        var nameCount: Int
        /// Whether the children are elements with an index, none of which may be missing.
        var isIndexed = false
        /// The number of pairs before it.
        var pairsBefore = 0
        var next = 0
    }

    private let sets: Set<String>
    private let arrays: FormArrayStyle
    private let limits: DocumentLimits
    private var open: [Open] = []
    /// The name of the current value, in UTF-8.
    private var name: [UInt8] = []
    private var values = 0
    /// The total length of all names so far, each of which is written at least once.
    private var named = 0
    private(set) var pairs: [QueryString.Pair] = []

    init(sets: Set<String>, arrays: FormArrayStyle, limits: DocumentLimits) {
        self.sets = sets
        self.arrays = arrays
        self.limits = limits
    }

    mutating func walk(_ value: DocumentValue) throws(DocumentError) {
        guard case .dictionary(let root) = value else {
            throw DocumentError(
                .form, .unrepresentable("\(value.kind) that is not in a dictionary"))
        }
        open.append(Open(children: Self.members(root), nameCount: 0))
        while let last = open.indices.last {
            let next = open[last].next
            guard next < open[last].children.count else {
                try leave(open.removeLast())
                continue
            }
            open[last].next += 1
            let child = open[last].children[next]
            setName(child.key, in: open[last].nameCount, isTop: last == 0)
            try add(child.value)
        }
    }

    private mutating func setName(_ key: String?, in count: Int, isTop: Bool) {
        name.removeLast(name.count - count)
        if isTop {
            name += (key ?? "").utf8
        } else if key != nil || arrays != .repeated {
            name.append(UInt8(ascii: "["))
            name += (key ?? "").utf8
            name.append(UInt8(ascii: "]"))
        }
    }

    private static func members(
        _ dictionary: DocumentDictionary
    ) -> [(key: String?, value: DocumentValue)] {
        dictionary.members
            .sorted { $0.key.utf16.lexicographicallyPrecedes($1.key.utf16) }
            .map { ($0.key, $0.value) }
    }

    private var isSet: Bool { !sets.isEmpty && sets.contains(nameText) }
    private var nameText: String { String(decoding: name, as: UTF8.self) }

    private mutating func add(_ value: DocumentValue) throws(DocumentError) {
        values += 1
        guard values <= limits.values else {
            throw error(.tooManyValues(maximum: limits.values))
        }
        switch value {
        case .dictionary(let dictionary): try enter(Self.members(dictionary))
        case .array(let elements) where isSet:
            try addSet(elements)
            if elements.isEmpty {
                try checkElement(nameCount: name.count, pairsBefore: pairs.count)
            }
        case .array(let elements) where arrays == .indices:
            try enter(elements.enumerated().map { (String($0), $1) }, areIndexed: true)
        case .array(let elements): try enter(elements.map { (nil, $0) })
        default:
            try check(value)
            try addPair(value)
        }
    }

    private mutating func enter(
        _ children: [(key: String?, value: DocumentValue)], areIndexed: Bool = false
    ) throws(DocumentError) {
        guard open.count < limits.depth else { throw error(.tooDeep(maximum: limits.depth)) }
        open.append(
            Open(
                children: children, nameCount: name.count, isIndexed: areIndexed,
                pairsBefore: pairs.count))
    }

    private mutating func leave(_ closed: Open) throws(DocumentError) {
        try checkElement(nameCount: closed.nameCount, pairsBefore: closed.pairsBefore)
    }

    /// An element that is not written would give its index to the next one, or leave a hole.
    private mutating func checkElement(nameCount: Int, pairsBefore: Int) throws(DocumentError) {
        guard open.last?.isIndexed ?? false, pairs.count == pairsBefore else { return }
        name.removeLast(name.count - nameCount)
        throw error(.unrepresentable("an element of an array without a value"))
    }

    private mutating func addSet(_ members: [DocumentValue]) throws(DocumentError) {
        for member in members { try check(member) }
        // Null is described as `<null>`, which determines its position.
        let sorted = members.map { (order: QueryString.text(of: $0) ?? "<null>", value: $0) }
            .sorted { $0.order.utf16.lexicographicallyPrecedes($1.order.utf16) }
        for member in sorted { try addPair(member.value) }
    }

    private mutating func addPair(_ value: DocumentValue) throws(DocumentError) {
        named += name.count
        guard named <= limits.output else {
            throw error(.outputTooLarge(maximum: limits.output))
        }
        pairs.append(QueryString.Pair(name: nameText, value: value))
    }

    /// Checks that a pair can represent a value.
    private func check(_ value: DocumentValue) throws(DocumentError) {
        switch value {
        case .array, .dictionary: throw error(.unrepresentable("\(value.kind) in a set"))
        case .date(let seconds) where DateText.text(seconds) == nil:
            throw error(.unrepresentable("a date outside the years 0000 to 9999"))
        default: break
        }
    }

    private func error(_ reason: DocumentError.Reason) -> DocumentError {
        DocumentError(.form, reason, path: QueryString.path(nameText))
    }
}

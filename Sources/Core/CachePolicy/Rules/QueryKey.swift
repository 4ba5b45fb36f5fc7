import HTTPCore

/// The part of the key that a query becomes under a route's rules.
///
/// What is left out, or put in order, must make no difference to any server, however it reads
/// queries. Servers differ: some separate parameters by `;`, too, some compare names regardless of
/// case, PHP takes `.` and space for `_` and cuts names at `[`, and all of them decode names. So:
///
/// - a parameter that has a `;`, or a name with anything but letters, digits and `-._~[]`, is never
///   left out;
/// - one that ``KeyRules/keptParameters`` names in another case, or as PHP would, is kept;
/// - a query with such a parameter, or with names that a server might take for the same in other
///   ways, is not put in order.
///
/// A query of more than ``maximumParameters`` is part of the key as it is.
struct QueryKey {
    /// The most parameters that are compared with patterns, so that a request takes bounded time.
    static let maximumParameters = 256

    let ignored: [NamePattern]
    let kept: [NamePattern]?
    let sorts: Bool

    /// `nil` if queries are part of the key as they are.
    init?(_ rules: KeyRules) {
        ignored = rules.ignoredParameters ?? []
        kept = rules.keptParameters
        sorts = rules.sortsParameters ?? false
        if ignored.isEmpty, kept == nil, !sorts { return nil }
    }

    /// Appends the query, with its question mark, as it is in the key; nothing if nothing is left.
    /// - Parameter query: without the question mark.
    func append(_ query: Span<UInt8>, to key: inout [UInt8]) {
        guard Self.isShort(query) else {
            key.append(UInt8(ascii: "?"))
            for index in query.indices { key.append(query[index]) }
            return
        }
        var parameters: [Range<Int>] = []
        var start = 0
        for index in 0...query.count where index == query.count || query[index] == ampersand {
            if !isLeftOut(query.extracting(start..<index)) { parameters.append(start..<index) }
            start = index + 1
        }
        guard !parameters.isEmpty else { return }
        if sorts { sort(&parameters, of: query) }
        var separator = UInt8(ascii: "?")
        for range in parameters {
            key.append(separator)
            for index in range { key.append(query[index]) }
            separator = ampersand
        }
    }

    private var ampersand: UInt8 { UInt8(ascii: "&") }

    /// Whether a query, or a value of Cookie, has no more than ``maximumParameters``.
    static func isShort(_ query: Span<UInt8>) -> Bool {
        var separators = 0
        for index in query.indices
        where query[index] == UInt8(ascii: "&") || query[index] == UInt8(ascii: ";") {
            separators += 1
        }
        return separators < maximumParameters
    }

    private func isLeftOut(_ parameter: Span<UInt8>) -> Bool {
        guard let end = Self.nameEnd(of: parameter) else { return false }
        let name = parameter.extracting(0..<end)
        if let kept {
            let read = Self.read(name)
            return !kept.contains {
                $0.matches(name, ignoringCase: true) || $0.matches(read.span, ignoringCase: true)
            }
        }
        return ignored.contains { $0.matches(name) }
    }

    /// Where the name of a parameter ends that every server reads alike; `nil` if some may not.
    private static func nameEnd(of parameter: Span<UInt8>) -> Int? {
        var end = 0
        while end < parameter.count, parameter[end] != UInt8(ascii: "=") {
            guard isPlain(parameter[end]) else { return nil }
            end += 1
        }
        for index in end..<parameter.count
        where parameter[index] == UInt8(ascii: ";") || parameter[index] == UInt8(ascii: "?") {
            return nil
        }
        return end == 0 ? nil : end
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"),
            UInt8(ascii: "."), UInt8(ascii: "~"), UInt8(ascii: "["), UInt8(ascii: "]"):
            true
        default: false
        }
    }

    /// A name as the most lenient server reads it: in lower case, with `.` as `_`, and cut at `[`.
    private static func read(_ name: Span<UInt8>) -> [UInt8] {
        var read: [UInt8] = []
        for index in name.indices {
            let byte = name[index]
            if byte == UInt8(ascii: "[") { break }
            read.append(byte == UInt8(ascii: ".") ? UInt8(ascii: "_") : ASCII.lowercased(byte))
        }
        return read
    }

    /// Sorts the parameters by their names. Those with one name keep their order.
    private func sort(_ parameters: inout [Range<Int>], of query: Span<UInt8>) {
        var named: [(name: [UInt8], range: Range<Int>)] = []
        for range in parameters {
            guard let end = Self.nameEnd(of: query.extracting(range)) else { return }
            let name = query.extracting(range.lowerBound..<range.lowerBound + end)
            guard Self.isBalanced(name) else { return }
            named.append((Self.read(name), range))
        }
        // The standard library's sort is stable, though it does not promise it.
        let order = named.indices.sorted { one, other in
            if named[one].name == named[other].name { return one < other }
            return named[one].name.lexicographicallyPrecedes(named[other].name)
        }
        parameters = order.map { named[$0].range }
    }

    /// Whether each `[` of a name is closed: PHP takes one that is not for `_`.
    private static func isBalanced(_ name: Span<UInt8>) -> Bool {
        var depth = 0
        for index in name.indices {
            if name[index] == UInt8(ascii: "[") { depth += 1 }
            if name[index] == UInt8(ascii: "]") { depth -= 1 }
            guard 0...1 ~= depth else { return false }
        }
        return depth == 0
    }
}

extension KeyRules {
    /// Whether queries are part of the key as they are.
    public var leavesQuery: Bool { QueryKey(self) == nil }

    /// A path and query as they are in the key.
    /// - Parameter target: the path, from `?` on the query, as they are sent.
    public func applied(to target: Span<UInt8>) -> [UInt8] {
        var key: [UInt8] = []
        key.reserveCapacity(target.count)
        var index = 0
        while index < target.count, target[index] != UInt8(ascii: "?") {
            key.append(target[index])
            index += 1
        }
        guard index < target.count else { return key }
        if let rules = QueryKey(self) {
            rules.append(target.extracting((index + 1)..<target.count), to: &key)
        } else {
            while index < target.count {
                key.append(target[index])
                index += 1
            }
        }
        return key
    }
}

extension BypassConditions {
    /// Whether the query of a path and query has a parameter whose name is among these, decoded and
    /// whatever its case: a request that a server may understand so is not answered from the cache.
    /// One with too many parameters to look at counts as that.
    public func areMet(byQueryOf target: Span<UInt8>) -> Bool {
        guard let parameters, !parameters.isEmpty else { return false }
        var start = 0
        while start < target.count, target[start] != UInt8(ascii: "?") { start += 1 }
        start += 1
        guard start >= target.count || QueryKey.isShort(target.extracting(start..<target.count))
        else { return true }
        var index = start
        while index <= target.count {
            let isEnd =
                index == target.count || target[index] == UInt8(ascii: "&")
                || target[index] == UInt8(ascii: ";")
            if isEnd {
                if start < index, Self.names(target.extracting(start..<index), parameters) {
                    return true
                }
                start = index + 1
            }
            index += 1
        }
        return false
    }

    private static func names(_ parameter: Span<UInt8>, _ patterns: [NamePattern]) -> Bool {
        var name: [UInt8] = []
        var index = 0
        while index < parameter.count, parameter[index] != UInt8(ascii: "=") {
            if parameter[index] == UInt8(ascii: "%"), index + 2 < parameter.count,
                let high = ASCII.hexValue(parameter[index + 1]),
                let low = ASCII.hexValue(parameter[index + 2])
            {
                name.append(high << 4 | low)
                index += 3
            } else {
                name.append(parameter[index])
                index += 1
            }
        }
        return patterns.contains { $0.matches(name.span, ignoringCase: true) }
    }

    /// Whether a value of Cookie has a cookie whose name is among these, or too many to look at.
    public func areMet(byCookies value: Span<UInt8>) -> Bool {
        guard let cookies, !cookies.isEmpty else { return false }
        guard QueryKey.isShort(value) else { return true }
        var start = 0
        for index in 0...value.count
        where index == value.count || value[index] == UInt8(ascii: ";") {
            var first = start
            while first < index, ASCII.isWhitespace(value[first]) { first += 1 }
            var end = first
            while end < index, value[end] != UInt8(ascii: "=") { end += 1 }
            while end > first, ASCII.isWhitespace(value[end - 1]) { end -= 1 }
            let name = value.extracting(first..<end)
            if !name.isEmpty, cookies.contains(where: { $0.matches(name) }) { return true }
            start = index + 1
        }
        return false
    }
}

extension Span where Element == UInt8 {
    /// Whether both have the same bytes.
    func hasSameBytes(as other: Span<UInt8>) -> Bool {
        withUnsafeBytes { own in other.withUnsafeBytes { own.hasSameBytes(as: $0) } }
    }
}

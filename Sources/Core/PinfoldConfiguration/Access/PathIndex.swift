import HTTPCore

/// Finds the first of some lists of path patterns that matches a path. It is asked for each
/// request, so it looks only at patterns with the path's second byte, and at the path's beginning
/// first, eight bytes at a time.
package final class PathIndex: Sendable {
    /// What a path is among the patterns.
    package enum Match: Sendable, Equatable {
        /// The first list that has a pattern for it.
        case list(Int)
        /// There is none.
        case none
        /// It depends on how a server reads the path (``PathForms``).
        case ambiguous
    }

    /// What all paths that a pattern matches begin and end with. It holds no references, so that
    /// looking at it costs nothing but that.
    private struct Probe: Sendable {
        /// Where the literals are in ``literals``: at the beginning before the first `*`, for
        /// ``Kind/below`` without the last slash, and for ``Kind/suffix`` at the end.
        var start: Int32 = 0
        var count: Int32 = 0
        var list: Int32 = 0
        var kind = Kind.pattern
        /// The last byte; 0 if there are several.
        var last: UInt8 = 0
    }

    private enum Kind: UInt8, Sendable {
        /// The literal alone.
        case exactly
        /// The literal and everything below it: `/v1/**`.
        case below
        /// Everything that ends in the literal: `/**/*.css`.
        case suffix
        /// Any other pattern.
        case pattern
    }

    /// The first eight bytes of each beginning, the first one lowest, and which of them count.
    private let beginnings: [(word: UInt64, mask: UInt64)]
    private let probes: [Probe]
    private let literals: [UInt8]
    private let patterns: [PathPattern]
    /// Which patterns a path may match, by the low bits of the byte behind its first slash (0 if
    /// there is none): for each of these a bit for each pattern, ``words`` words of them.
    private let candidates: [UInt64]
    private let words: Int
    private static let rows = 64

    /// - Parameter lists: the patterns of each list, in the order in which they are tried.
    package init(_ lists: [[PathPattern]]) {
        var beginnings: [(word: UInt64, mask: UInt64)] = []
        var probes: [Probe] = []
        var literals: [UInt8] = []
        for (list, patterns) in lists.enumerated() {
            for pattern in patterns {
                let bytes = Array(pattern.description.utf8)
                var probe = Probe(list: Int32(list))
                let literal = Self.literal(of: bytes, &probe)
                probe.start = Int32(literals.count)
                probe.count = Int32(literal.count)
                literals += literal
                var beginning: (word: UInt64, mask: UInt64) = (0, 0)
                for (place, byte) in literal.prefix(8).enumerated() where probe.kind != .suffix {
                    beginning.word |= UInt64(byte) << UInt64(place * 8)
                    beginning.mask |= 0xFF << UInt64(place * 8)
                }
                beginnings.append(beginning)
                probes.append(probe)
            }
        }
        words = (probes.count + 63) / 64
        var candidates = [UInt64](repeating: 0, count: Self.rows * words)
        for (index, probe) in probes.enumerated() {
            let isOfAnyByte = probe.kind == .suffix || probe.count < 2
            let second = isOfAnyByte ? 0 : Int(literals[Int(probe.start) + 1]) % Self.rows
            for row in 0..<Self.rows where isOfAnyByte || row == second {
                candidates[row * words + index / 64] |= 1 << UInt64(index % 64)
            }
        }
        self.candidates = candidates
        self.beginnings = beginnings
        self.probes = probes
        self.literals = literals
        patterns = lists.flatMap { $0 }
    }

    /// The literal by which a pattern is looked for, and its kind.
    private static func literal(of bytes: [UInt8], _ probe: inout Probe) -> [UInt8] {
        let star = UInt8(ascii: "*")
        var literal = Array(bytes.prefix { $0 != star })
        let rest = bytes.dropFirst(literal.count)
        if rest.isEmpty {
            probe.kind = .exactly
            return literal
        }
        if rest.last != star { probe.last = rest.last ?? 0 }
        let ending = bytes.dropFirst(5)
        if bytes.starts(with: "/**/*".utf8), !ending.isEmpty,
            !ending.contains(where: { $0 == star || $0 == UInt8(ascii: "/") })
        {
            probe.kind = .suffix
            return Array(ending)
        }
        if rest.elementsEqual("**".utf8) { probe.kind = .below }
        // What `**` stands for may be nothing, with the slash before it.
        if rest.starts(with: "**".utf8) { literal.removeLast() }
        return literal
    }

    /// The first list for a path.
    /// - Parameter target: the path as it is sent, with its query; if empty, the path is `/`.
    package func match(_ target: Span<UInt8>) -> Match {
        target.withUnsafeBytes { target in
            guard let (end, word) = PlainPath.read(target), let base = target.baseAddress else {
                return matchForms(of: target)
            }
            let second = end > 1 ? base.load(fromByteOffset: 1, as: UInt8.self) : 0
            return candidates.withUnsafeBufferPointer { candidates in
                beginnings.withUnsafeBufferPointer { beginnings in
                    var place = Int(second) % Self.rows &* words
                    var start = 0
                    while start < probes.count {
                        var left = candidates[place]
                        while left != 0 {
                            let index = start &+ left.trailingZeroBitCount
                            left &= left &- 1
                            if word & beginnings[index].mask == beginnings[index].word,
                                matches(index, base, end)
                            {
                                return .list(Int(probes[index].list))
                            }
                        }
                        place &+= 1
                        start &+= 64
                    }
                    return .none
                }
            }
        }
    }

    /// Whether a pattern matches a path with its beginning.
    @inline(never)
    private func matches(_ index: Int, _ path: UnsafeRawPointer, _ end: Int) -> Bool {
        probes.withUnsafeBufferPointer { probes in
            let probe = probes[index]
            if probe.last != 0,
                probe.last != path.load(fromByteOffset: end &- 1, as: UInt8.self)
            {
                return false
            }
            let count = Int(probe.count)
            switch probe.kind {
            case .exactly: return end == count && begins(probe, path, end)
            case .below:
                guard begins(probe, path, end) else { return false }
                return end == count
                    || path.load(fromByteOffset: count, as: UInt8.self) == UInt8(ascii: "/")
            case .suffix: return ends(probe, path, end)
            case .pattern:
                return begins(probe, path, end) && matchesPattern(index, path, end)
            }
        }
    }

    /// Whether the path begins with the literal, whose first eight bytes have been compared.
    @inline(__always)
    private func begins(_ probe: Probe, _ path: UnsafeRawPointer, _ end: Int) -> Bool {
        guard end >= Int(probe.count) else { return false }
        return probe.count <= 8 || isSame(probe, path)
    }

    @inline(never)
    private func ends(_ probe: Probe, _ path: UnsafeRawPointer, _ end: Int) -> Bool {
        guard end > Int(probe.count) else { return false }
        return isSame(probe, path + (end - Int(probe.count)))
    }

    @inline(never)
    private func isSame(_ probe: Probe, _ path: UnsafeRawPointer) -> Bool {
        literals.withUnsafeBytes { literals in
            let literal = literals[Int(probe.start)..<Int(probe.start + probe.count)]
            return UnsafeRawBufferPointer(start: path, count: Int(probe.count))
                .hasSameBytes(as: UnsafeRawBufferPointer(rebasing: literal))
        }
    }

    @inline(never)
    private func matchesPattern(_ index: Int, _ path: UnsafeRawPointer, _ end: Int) -> Bool {
        patterns[index].matches(UnsafeRawBufferPointer(start: path, count: end).octets)
    }

    /// The list for a path that servers may read in different ways, if it is the same for all.
    @inline(never)
    private func matchForms(of target: UnsafeRawBufferPointer) -> Match {
        let sent = Array(target.prefix { $0 != UInt8(ascii: "?") })
        guard !sent.isEmpty else { return match("/".utf8.span) }
        // `*` has no path.
        guard sent.first == UInt8(ascii: "/") else { return .none }
        guard let forms = PathForms(of: sent.span) else { return .ambiguous }
        func list(_ path: [UInt8]) -> Int? {
            patterns.firstIndex { $0.matches(path.span) }.map { Int(probes[$0].list) }
        }
        let canonical = list(forms.canonical)
        guard canonical == list(forms.lenient), canonical == list(forms.cut),
            canonical == list(sent)
        else { return .ambiguous }
        return canonical.map { .list($0) } ?? .none
    }
}

/// A path that has only one form, its own, as most have.
private enum PlainPath {
    private static let lows: UInt64 = 0x0101_0101_0101_0101
    private static let highs: UInt64 = 0x8080_8080_8080_8080

    /// Where a path ends, and its first eight bytes, the first one lowest and zeros after its end;
    /// `nil` if it does not begin with a slash, or may have other forms
    /// (``PathForms/isPlain(_:)``).
    /// - Parameter target: the path, and behind a `?` the query.
    @inline(__always)
    static func read(_ target: UnsafeRawBufferPointer) -> (end: Int, first: UInt64)? {
        guard let base = target.baseAddress, target.count > 0,
            base.load(as: UInt8.self) == UInt8(ascii: "/")
        else { return nil }
        let first = word(base, target.count)
        if isClear(base, target.count, first) { return (target.count, first) }
        return readToQuery(target)
    }

    /// The same for a path that may have a query.
    @inline(never)
    private static func readToQuery(
        _ target: UnsafeRawBufferPointer
    ) -> (end: Int, first: UInt64)? {
        guard let base = target.baseAddress,
            let end = target.firstIndex(of: UInt8(ascii: "?"))
        else { return nil }
        let first = word(base, end)
        return isClear(base, end, first) ? (end, first) : nil
    }

    /// Whether nothing in the bytes is a reason to look closer. Words overlap by a byte, and the
    /// last one by more, so that no two neighbours are missed.
    @inline(__always)
    private static func isClear(
        _ base: UnsafeRawPointer, _ count: Int, _ first: UInt64
    ) -> Bool {
        var found = unclear(first)
        var offset = 7
        while offset &+ 8 < count {
            found |= unclear(load(base, offset))
            offset &+= 7
        }
        if count > 8 { found |= unclear(load(base, count &- 8)) }
        return found == 0
    }

    /// Bits of the bytes of a word that are `%`, `;`, `?` or `\`, or a slash or dot behind a
    /// slash. If there are any, the lowest is right.
    @inline(__always)
    private static func unclear(_ word: UInt64) -> UInt64 {
        // A byte is zero if subtracting 1 sets its high bit. `;` and `?`, and `.` and `/`, differ
        // in one bit.
        let semicolons = ((word & (lows &* 0xFB)) ^ (lows &* 0x3B)) &- lows
        let percents = (word ^ (lows &* 0x25)) &- lows
        let backslashes = (word ^ (lows &* 0x5C)) &- lows
        let ascii = ~word & highs
        let slashesAndDots = (((word & (lows &* 0xFE)) ^ (lows &* 0x2E)) &- lows) & ascii
        let slashes = slashesAndDots & (word &<< 7)
        return ((semicolons | percents | backslashes) & ascii)
            | ((slashes &<< 8) & slashesAndDots)
    }

    @inline(__always)
    private static func load(_ base: UnsafeRawPointer, _ offset: Int) -> UInt64 {
        UInt64(littleEndian: base.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    /// The first eight bytes, or as many as there are.
    @inline(__always)
    private static func word(_ base: UnsafeRawPointer, _ count: Int) -> UInt64 {
        if count >= 8 { return load(base, 0) }
        return shortWord(base, count)
    }

    @inline(never)
    private static func shortWord(_ base: UnsafeRawPointer, _ count: Int) -> UInt64 {
        var word: UInt64 = 0
        var place = count
        while place > 0 {
            place &-= 1
            word = word &<< 8 | UInt64(base.load(fromByteOffset: place, as: UInt8.self))
        }
        return word
    }
}

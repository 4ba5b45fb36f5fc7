import HTTPCore

/// Finds the first of some lists of path patterns that matches a path. It is asked for each
/// request, so it looks at the path's beginning first, eight bytes at a time.
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

    /// A pattern, and what all paths that it matches begin with.
    private struct Probe: Sendable {
        /// The first eight bytes of the beginning, the first one lowest, and which of them count.
        let word: UInt64
        let mask: UInt64
        let list: Int
        let kind: Kind
        /// The last byte of all paths that it matches; 0 if they have several.
        let last: UInt8
        /// The literal bytes before the first `*`; for ``Kind/below``, without the last slash.
        let literal: [UInt8]
        let pattern: PathPattern
    }

    private enum Kind: Sendable {
        /// The literal alone.
        case exactly
        /// The literal and everything below it: `/v1/**`.
        case below
        /// Any other pattern.
        case pattern
    }

    private let probes: [Probe]

    /// - Parameter lists: the patterns of each list, in the order in which they are tried.
    package init(_ lists: [[PathPattern]]) {
        probes = lists.enumerated().flatMap { index, patterns in
            patterns.map { Self.probe($0, of: index) }
        }
    }

    private static func probe(_ pattern: PathPattern, of list: Int) -> Probe {
        let bytes = Array(pattern.description.utf8)
        var literal = Array(bytes.prefix { $0 != UInt8(ascii: "*") })
        var kind = Kind.pattern
        if literal.count == bytes.count {
            kind = .exactly
        } else if bytes.count == literal.count + 2, bytes.hasSuffix("/**") {
            kind = .below
        }
        // What `**` stands for may be nothing, with the slash before it.
        if bytes.dropFirst(literal.count).starts(with: "**".utf8) { literal.removeLast() }
        var word: UInt64 = 0
        var mask: UInt64 = 0
        for (place, byte) in literal.prefix(8).enumerated() {
            word |= UInt64(byte) << UInt64(place * 8)
            mask |= 0xFF << UInt64(place * 8)
        }
        let last = kind == .pattern && bytes.last != UInt8(ascii: "*") ? bytes.last : nil
        return Probe(
            word: word, mask: mask, list: list, kind: kind, last: last ?? 0, literal: literal,
            pattern: pattern)
    }

    /// The first list for a path.
    /// - Parameter target: the path as it is sent, with its query; if empty, the path is `/`.
    package func match(_ target: Span<UInt8>) -> Match {
        target.withUnsafeBytes { target in
            guard let (end, word) = PlainPath.read(target) else { return matchForms(of: target) }
            let path = UnsafeRawBufferPointer(rebasing: target[..<end])
            if let list = first(path, word) { return .list(list) }
            return .none
        }
    }

    @inline(__always)
    private func first(_ path: UnsafeRawBufferPointer, _ word: UInt64) -> Int? {
        // It begins with a slash.
        let last = path[path.count &- 1]
        return probes.withUnsafeBufferPointer { probes in
            var index = 0
            while index < probes.count {
                if word & probes[index].mask == probes[index].word,
                    probes[index].last == last || probes[index].last == 0,
                    Self.matches(probes[index], path)
                {
                    return probes[index].list
                }
                index &+= 1
            }
            return nil
        }
    }

    @inline(never)
    private static func matches(_ probe: Probe, _ path: UnsafeRawBufferPointer) -> Bool {
        let count = probe.literal.count
        guard path.count >= count else { return false }
        if count > 8 {
            let isSame = probe.literal.withUnsafeBytes {
                UnsafeRawBufferPointer(rebasing: path[..<count]).hasSameBytes(as: $0)
            }
            guard isSame else { return false }
        }
        switch probe.kind {
        case .exactly: return path.count == count
        case .below: return path.count == count || path[count] == UInt8(ascii: "/")
        case .pattern: return probe.pattern.matches(path.octets)
        }
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
            probes.first { $0.pattern.matches(path.span) }?.list
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

    /// The high bit of each byte of a word that is zero. Those above a zero may be wrong if they
    /// are 1.
    @inline(__always)
    private static func zeros(_ word: UInt64) -> UInt64 { (word &- lows) & ~word & highs }

    /// Where a path ends, and its first eight bytes, the first one lowest and zeros after its end;
    /// `nil` if it does not begin with a slash, or may have other forms
    /// (``PathForms/isPlain(_:)``).
    /// - Parameter target: the path, and behind a `?` the query.
    @inline(__always)
    static func read(_ target: UnsafeRawBufferPointer) -> (end: Int, first: UInt64)? {
        guard let base = target.baseAddress, target.count > 0,
            base.load(as: UInt8.self) == UInt8(ascii: "/")
        else { return nil }
        var first: UInt64 = 0
        var offset = 0
        /// The high bit of the lowest byte, if the word before ended in a slash.
        var carry: UInt64 = 0
        while offset < target.count {
            var word = load(base, offset, target.count)
            let marks = zeros(word ^ (lows &* 0x3F))
            // Of the byte that the first `?` is, and the bytes before it.
            let before = ((marks & (0 &- marks)) >> 7) &- 1
            if marks != 0 { word &= before }
            let slashesAndDots = zeros((word & (lows &* 0xFE)) ^ (lows &* 0x2E))
            let slashes = slashesAndDots & (word &<< 7)
            let others =
                zeros(word ^ (lows &* 0x25)) | zeros(word ^ (lows &* 0x3B))
                | zeros(word ^ (lows &* 0x5C))
            if ((slashes &<< 8) | carry) & slashesAndDots | others != 0 { return nil }
            carry = slashes &>> 56
            if offset == 0 { first = word }
            if marks != 0 { return (offset &+ marks.trailingZeroBitCount / 8, first) }
            offset &+= 8
        }
        return (target.count, first)
    }

    /// The eight bytes at an offset, or as many as there are.
    @inline(__always)
    private static func load(_ base: UnsafeRawPointer, _ offset: Int, _ count: Int) -> UInt64 {
        let left = count &- offset
        if left >= 8 {
            return UInt64(
                littleEndian: base.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        }
        if count >= 8 {
            let last = UInt64(
                littleEndian: base.loadUnaligned(fromByteOffset: count &- 8, as: UInt64.self))
            return last &>> UInt64(truncatingIfNeeded: (8 &- left) &* 8)
        }
        var word: UInt64 = 0
        for place in 0..<left {
            word |=
                UInt64(base.load(fromByteOffset: offset &+ place, as: UInt8.self))
                &<< UInt64(truncatingIfNeeded: place &* 8)
        }
        return word
    }
}

extension [UInt8] {
    fileprivate func hasSuffix(_ text: StaticString) -> Bool {
        count >= text.utf8CodeUnitCount
            && (0..<text.utf8CodeUnitCount).allSatisfy {
                self[count - text.utf8CodeUnitCount + $0] == text.utf8Start[$0]
            }
    }
}

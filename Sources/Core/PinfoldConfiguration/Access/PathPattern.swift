import HTTPCore

/// Why a text is not a path pattern.
package enum PathPatternError: Error, Hashable, Sendable, CaseIterable {
    case noSlash
    case query
    case character
    case encoded
    case notCanonical
    case wildcard

    /// What is wrong and what was expected, for a configuration's error line.
    package var problem: String {
        switch self {
        case .noSlash: "a path begins with '/'"
        case .query: "the query is no part of the path, and is not looked at"
        case .character: "a character that no path contains"
        case .encoded: "an encoded octet cannot be compared; write '*' in its place"
        case .notCanonical:
            "it is compared with the canonical path, which has no '//', no '.' or '..' as a "
                + "segment, and no ';'"
        case .wildcard: "'**' stands for whole segments, as in '/v1/**'"
        }
    }
}

/// The paths that a rule applies to: `/v1/items` exactly, with `*` for any characters within a
/// segment, and `**` for any number of segments, none included: `/v1/**` is `/v1` and everything
/// below it. Case matters, and so does a slash at the end.
package struct PathPattern: Sendable, Hashable, CustomStringConvertible {
    private enum Segment: Sendable, Hashable {
        /// The bytes, where `*` stands for any characters.
        case one([UInt8])
        case anyNumber
    }

    private let segments: [Segment]
    package let description: String

    /// Parses a pattern.
    package init(_ text: String) throws(PathPatternError) {
        guard text.hasPrefix("/") else { throw .noSlash }
        let bytes = Array(text.utf8)
        guard !bytes.contains(where: { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") }) else {
            throw .query
        }
        guard bytes.allSatisfy({ 0x21...0x7E ~= $0 && $0 != UInt8(ascii: "\\") }) else {
            throw .character
        }
        guard !bytes.contains(UInt8(ascii: "%")) else { throw .encoded }
        guard PathForms(of: bytes.span)?.canonical == bytes else { throw .notCanonical }
        var segments: [Segment] = []
        for segment in bytes.dropFirst().split(
            separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        {
            let hasDouble = zip(segment, segment.dropFirst())
                .contains { $0 == UInt8(ascii: "*") && $1 == UInt8(ascii: "*") }
            if hasDouble {
                guard segment.count == 2 else { throw .wildcard }
                if segments.last != .anyNumber { segments.append(.anyNumber) }
            } else {
                segments.append(.one(Array(segment)))
            }
        }
        self.segments = segments
        description = text
    }

    /// Whether it matches a path, which begins with `/`. The time is at most proportional to the
    /// product of both lengths.
    package func matches(_ path: Span<UInt8>) -> Bool {
        guard path.count > 0, path[0] == UInt8(ascii: "/") else { return false }
        // Where the last `**` is, and where in the path what follows it was tried last.
        var any: (segment: Int, start: Int)?
        var index = 0
        var start = 1
        while start <= path.count {
            if index < segments.count {
                switch segments[index] {
                case .anyNumber:
                    any = (index, start)
                    index += 1
                    continue
                case .one(let pattern):
                    let end = Self.segmentEnd(path, start)
                    if Self.matches(pattern, path, start..<end) {
                        index += 1
                        start = end + 1
                        continue
                    }
                }
            }
            guard let last = any else { return false }
            start = Self.segmentEnd(path, last.start) + 1
            any = (last.segment, start)
            index = last.segment + 1
        }
        return segments[index...].allSatisfy { $0 == .anyNumber }
    }

    private static func segmentEnd(_ path: Span<UInt8>, _ start: Int) -> Int {
        var end = start
        while end < path.count, path[end] != UInt8(ascii: "/") { end += 1 }
        return end
    }

    private static func matches(
        _ pattern: [UInt8], _ path: Span<UInt8>, _ range: Range<Int>
    ) -> Bool {
        var star: (pattern: Int, path: Int)?
        var index = 0
        var position = range.lowerBound
        while position < range.upperBound {
            if index < pattern.count, pattern[index] == UInt8(ascii: "*") {
                star = (index, position)
                index += 1
            } else if index < pattern.count, pattern[index] == path[position] {
                index += 1
                position += 1
            } else if let last = star {
                position = last.path + 1
                star = (last.pattern, position)
                index = last.pattern + 1
            } else {
                return false
            }
        }
        return pattern[index...].allSatisfy { $0 == UInt8(ascii: "*") }
    }
}

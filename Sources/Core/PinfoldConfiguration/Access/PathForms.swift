import HTTPCore

/// The forms of a request's path by which rules are judged: as sent, in its canonical form (RFC
/// 3986 §6.2.2), and as the most lenient server reads it. A rule that judges them differently could
/// be evaded by writing the same path in another way.
package struct PathForms {
    /// Unreserved octets are decoded, dot segments are removed, adjacent slashes are merged, and
    /// the parameters of segments (`;…`) are cut off. Begins with `/`.
    package let canonical: [UInt8]
    /// The same after decoding every octet, repeatedly, and with `\` as `/`.
    package let lenient: [UInt8]
    /// What is left of that where a server ends the path at an octet that was encoded: NUL, with
    /// which C's strings end, `?` or `#`.
    package let cut: [UInt8]

    /// - Parameter path: the path without the query; empty means `/`.
    /// - Returns: `nil` if octets are encoded more than four times over, which nobody does who
    ///   has nothing to hide.
    package init?(of path: Span<UInt8>) {
        let bytes = path.indices.map { path[$0] }
        canonical = Self.normalized(Self.decoded(bytes, all: false))
        var lenient = bytes
        for _ in 0..<Self.decodings {
            let decoded = Self.decoded(lenient, all: true)
            if decoded == lenient { break }
            lenient = decoded
        }
        guard Self.decoded(lenient, all: true) == lenient else { return nil }
        let slash = UInt8(ascii: "/")
        lenient = lenient.map { $0 == UInt8(ascii: "\\") ? slash : $0 }
        self.lenient = Self.normalized(lenient)
        cut = Self.normalized(
            Array(lenient.prefix { ![0, UInt8(ascii: "?"), UInt8(ascii: "#")].contains($0) }))
    }

    /// How often an octet that is encoded repeatedly is decoded.
    private static let decodings = 4

    /// Whether a path has only one form, its own: it need not be judged by others.
    package static func isPlain(_ path: Span<UInt8>) -> Bool {
        guard path.count > 0, path[0] == UInt8(ascii: "/") else { return false }
        var previous: UInt8 = 0
        for index in path.indices {
            let byte = path[index]
            switch byte {
            case UInt8(ascii: "%"), UInt8(ascii: ";"), UInt8(ascii: "\\"): return false
            case UInt8(ascii: "/"), UInt8(ascii: "."):
                if previous == UInt8(ascii: "/") { return false }
            default: break
            }
            previous = byte
        }
        return true
    }

    /// - Parameter all: whether all encoded octets are decoded; otherwise only unreserved ones.
    private static func decoded(_ path: [UInt8], all: Bool) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(path.count)
        var index = 0
        while index < path.count {
            if path[index] == UInt8(ascii: "%"), index + 2 < path.count,
                let high = ASCII.hexValue(path[index + 1]),
                let low = ASCII.hexValue(path[index + 2])
            {
                let byte = high << 4 | low
                if all || isUnreserved(byte) {
                    result.append(byte)
                    index += 3
                    continue
                }
            }
            result.append(path[index])
            index += 1
        }
        return result
    }

    /// RFC 3986 §2.3.
    private static func isUnreserved(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "_"), UInt8(ascii: "~"):
            true
        default: false
        }
    }

    /// Cuts the parameters off, removes dot segments (RFC 3986 §5.2.4), and merges slashes.
    private static func normalized(_ path: [UInt8]) -> [UInt8] {
        var segments: [ArraySlice<UInt8>] = []
        var endsInSlash = true
        let dot = UInt8(ascii: ".")
        for written in path.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
            let segment = written.prefix { $0 != UInt8(ascii: ";") }
            endsInSlash = true
            if segment.isEmpty || segment.elementsEqual([dot]) { continue }
            if segment.elementsEqual([dot, dot]) {
                _ = segments.popLast()
                continue
            }
            segments.append(segment)
            endsInSlash = false
        }
        var result: [UInt8] = []
        result.reserveCapacity(path.count + 1)
        for segment in segments {
            result.append(UInt8(ascii: "/"))
            result += segment
        }
        if endsInSlash { result.append(UInt8(ascii: "/")) }
        return result
    }
}

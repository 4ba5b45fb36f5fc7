import HTTPCore

/// A content coding that can be decoded (RFC 9110 §8.4.1).
package enum ContentCoding: UInt8, Sendable, CaseIterable {
    /// None: the content itself.
    case identity
    /// RFC 1952; `x-gzip` is the same.
    case gzip
    /// The zlib format (RFC 1950). Raw deflate (RFC 1951), which many servers send, is recognized
    /// and decoded, too.
    case deflate
    /// RFC 7932, `br`.
    case brotli
    /// RFC 8878, with the window that RFC 9659 allows.
    case zstd

    /// The name as written in Content-Encoding.
    package var name: StaticString {
        switch self {
        case .identity: "identity"
        case .gzip: "gzip"
        case .deflate: "deflate"
        case .brotli: "br"
        case .zstd: "zstd"
        }
    }

    /// The coding with this name, ignoring case; `nil` if it cannot be decoded.
    package init?(name: Span<UInt8>) {
        if name.equals(lowercase: "gzip") || name.equals(lowercase: "x-gzip") {
            self = .gzip
        } else if name.equals(lowercase: "deflate") {
            self = .deflate
        } else if name.equals(lowercase: "br") {
            self = .brotli
        } else if name.equals(lowercase: "zstd") {
            self = .zstd
        } else if name.equals(lowercase: "identity") {
            self = .identity
        } else {
            return nil
        }
    }

    /// The codings of a message whose Content-Encoding lines have these values, in the order in
    /// which they were applied, without `identity`. `nil` if one is unknown.
    package static func parse(_ fieldValues: [[UInt8]]) -> [ContentCoding]? {
        var list = ContentCodingList()
        for value in fieldValues { list.add(value.span) }
        return list.codings
    }
}

/// Parses Content-Encoding, line by line.
package struct ContentCodingList: Sendable {
    private var found: [ContentCoding] = []
    private var hasUnknown = false

    /// Creates an empty list.
    package init() {}

    /// The codings of all lines in the order in which they were applied, without `identity`. `nil`
    /// if one is unknown.
    package var codings: [ContentCoding]? { hasUnknown ? nil : found }

    /// Adds the codings of a line. Empty members are skipped (RFC 9110 §5.6.1.2).
    package mutating func add(_ value: Span<UInt8>) {
        var members = ListMembers(value)
        while let member = members.next(in: value) {
            guard let coding = ContentCoding(name: value.extracting(member)) else {
                hasUnknown = true
                return
            }
            if coding != .identity { found.append(coding) }
        }
    }
}

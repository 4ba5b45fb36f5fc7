import HTTPCore
import HTTPTypes

/// The fields of a response, with marks for those on which the task has to act.
struct ReceivedFields: Sendable {
    var fields = HTTPFields()
    var marks = FieldMarks()
}

/// Rare fields on which a task has to act. They are marked once, when a response's lines are
/// parsed, so that nobody has to search for them.
struct FieldMarks: OptionSet, Sendable {
    let rawValue: UInt8

    static let contentEncoding = Self(rawValue: 1)
    static let setCookie = Self(rawValue: 2)
    static let authenticationInfo = Self(rawValue: 4)
    /// The content is an event stream.
    static let eventStream = Self(rawValue: 8)

    init(rawValue: UInt8) { self.rawValue = rawValue }

    init(_ field: HTTPField) {
        switch field.name {
        case .contentType
        where ServerSentEventParser.isEventStream(contentType: field.value):
            self = .eventStream
        case .contentEncoding: self = .contentEncoding
        case .setCookie: self = .setCookie
        case .authenticationInfo: self = .authenticationInfo
        default: self = []
        }
    }
}

/// Converts field lines to the fields of HTTP types.
///
/// Responses of a server mostly repeat the same lines. Short lines of fields that are not
/// confidential are cached as parsed, up to a fixed number per loop. Other lines are parsed each
/// time and not kept.
final class FieldLineCache {
    /// The number of sets of cached lines. Each set has two entries, of which the less recently
    /// used one is replaced.
    private static let sets = 128
    /// The maximum length of a cached line in bytes, without CRLF.
    static let longestKept = 96

    /// The fields whose lines are cached. Fields that may say something about a user, such as a
    /// cookie, a credential or a location, are not among them.
    private static let kept: Set<String> = [
        "accept-ranges", "access-control-allow-origin", "age", "allow", "alt-svc", "cache-control",
        "cache-status", "connection", "content-encoding", "content-language", "content-length",
        "content-type", "date", "etag", "expires", "keep-alive", "last-modified", "pragma",
        "server", "strict-transport-security", "vary", "via", "x-content-type-options",
        "x-frame-options",
    ]

    /// Fields that the engine appends after the server's own, each once. They are removed, because
    /// this is not a gateway.
    private enum Owner {
        case server, via, cacheStatus

        init(_ name: HTTPField.Name) {
            switch name.canonicalName {
            case "via": self = .via
            case "cache-status": self = .cacheStatus
            default: self = .server
            }
        }
    }

    /// A parsed line. As an object it is a single reference, while the field alone would be three.
    private final class Line {
        let bytes: [UInt8]
        let field: HTTPField
        let owner: Owner
        let mark: FieldMarks
        /// Whether the line is short and not confidential.
        let mayBeKept: Bool

        init(_ bytes: UnsafeRawBufferPointer, _ name: HTTPField.Name, value: [UInt8]) {
            self.bytes = Array(bytes)
            field = HTTPField(name: name, value: value)
            owner = Owner(name)
            mark = FieldMarks(field)
            mayBeKept =
                bytes.count <= FieldLineCache.longestKept
                && FieldLineCache.kept.contains(name.canonicalName)
        }
    }

    /// The fields of lines. `HTTPFields` accepts any collection; from this one, it gets each field
    /// by a single statically known call.
    private struct Fields: RandomAccessCollection {
        let lines: [Line]

        struct Iterator: IteratorProtocol {
            let lines: [Line]
            var index = 0

            mutating func next() -> HTTPField? {
                guard index < lines.count else { return nil }
                defer { index += 1 }
                return lines[index].field
            }
        }

        var startIndex: Int { 0 }
        var endIndex: Int { lines.count }
        subscript(index: Int) -> HTTPField { lines[index].field }
        func makeIterator() -> Iterator { Iterator(lines: lines) }
    }

    private struct Pair {
        var latest: Line?
        var other: Line?

        mutating func exchange() { swap(&latest, &other) }
    }

    private var pairs = Array(repeating: Pair(), count: sets)

    /// The most recent set of lines that all can be cached, with their fields: responses that a
    /// server sends within a second are often identical.
    private var latest = (bytes: [UInt8](), includesEngineFields: true, received: ReceivedFields())
    /// The maximum length of such a set in bytes. Longer heads are read line by line.
    private static let longestLatest = 2048

    /// The number of lines that were parsed; for tests.
    private(set) var readCount = 0

    /// Returns the fields of a response.
    ///
    /// - Parameters:
    ///   - bytes: Well-formed lines with name, colon, value and CRLF.
    ///   - includesEngineFields: Whether they include the engine's own fields.
    func fields(of bytes: UnsafeRawBufferPointer, includesEngineFields: Bool = true)
        -> ReceivedFields
    {
        if includesEngineFields == latest.includesEngineFields,
            latest.bytes.withUnsafeBytes({ $0.hasSameBytes(as: bytes) })
        {
            return latest.received
        }
        let lines = lines(of: bytes, includesEngineFields: includesEngineFields)
        var received = ReceivedFields()
        received.fields.reserveCapacity(lines.count)
        // All at once, which saves a call of a generic function for each of them.
        received.fields.replaceSubrange(0..<0, with: Fields(lines: lines))
        for line in lines { received.marks.formUnion(line.mark) }
        if bytes.count <= Self.longestLatest, lines.allSatisfy(\.mayBeKept) {
            latest.bytes.replaceSubrange(0..., with: bytes)
            (latest.includesEngineFields, latest.received) = (includesEngineFields, received)
        }
        return received
    }

    private func lines(of bytes: UnsafeRawBufferPointer, includesEngineFields: Bool) -> [Line] {
        var found: [Line] = []
        found.reserveCapacity(16)
        var (via, cacheStatus): (Int?, Int?)
        var start = 0
        while start < bytes.count {
            let end = bytes.octets.firstIndex(of: 13, from: start)
            guard end < bytes.count else { break }
            if let line = line(UnsafeRawBufferPointer(rebasing: bytes[start..<end])) {
                switch line.owner {
                case .server: break
                case .via: via = found.count
                case .cacheStatus: cacheStatus = found.count
                }
                found.append(line)
            }
            start = end + 2
        }
        if includesEngineFields {
            if let via { found.remove(at: via) }
            if let cacheStatus {
                found.remove(at: cacheStatus - (via.map { $0 < cacheStatus } ?? false ? 1 : 0))
            }
        }
        return found
    }

    /// Returns `nil` if the line has no name.
    private func line(_ bytes: UnsafeRawBufferPointer) -> Line? {
        guard bytes.count <= Self.longestKept else { return Self.read(bytes) }
        let index = Self.setIndex(of: bytes)
        if let line = pairs[index].latest, Self.holds(line, bytes) { return line }
        if let line = pairs[index].other, Self.holds(line, bytes) {
            pairs[index].exchange()
            return line
        }
        readCount += 1
        guard let line = Self.read(bytes) else { return nil }
        if line.mayBeKept {
            pairs[index].other = pairs[index].latest
            pairs[index].latest = line
        }
        return line
    }

    private static func holds(_ line: Line, _ bytes: UnsafeRawBufferPointer) -> Bool {
        line.bytes.withUnsafeBytes { $0.hasSameBytes(as: bytes) }
    }

    private static func setIndex(of bytes: UnsafeRawBufferPointer) -> Int {
        var hash = UInt64(bytes.count)
        var offset = 0
        while offset &+ 8 <= bytes.count {
            hash ^= bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
            hash = (hash &* 0x9E37_79B9_7F4A_7C15) ^ (hash >> 29)
            offset &+= 8
        }
        while offset < bytes.count {
            hash = (hash ^ UInt64(bytes[offset])) &* 0x9E37_79B9_7F4A_7C15
            offset &+= 1
        }
        return Int(truncatingIfNeeded: hash >> 32) & (sets - 1)
    }

    private static func read(_ bytes: UnsafeRawBufferPointer) -> Line? {
        let colon = bytes.octets.firstIndex(of: UInt8(ascii: ":"), from: 0)
        guard colon < bytes.count,
            let name = HTTPField.Name(String(decoding: bytes[..<colon], as: UTF8.self))
        else { return nil }
        let value = bytes[(colon + 1)...].drop(while: ASCII.isWhitespace)
        return Line(bytes, name, value: Array(value))
    }
}

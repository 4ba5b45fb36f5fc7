import HTTPCore

/// Several ranges of a representation, as the parts of a multipart/byteranges (RFC 9110 §14.6).
///
/// They are sent in the order in which they were asked for, each with its Content-Type and
/// Content-Range.
public struct MultipartRanges: Sendable, Equatable {
    /// A part: what precedes its bytes, and their positions.
    public struct Part: Sendable, Equatable {
        public let head: [UInt8]
        public let range: Range<UInt64>
    }

    /// What a Range field with several ranges asks for.
    enum Selection: Equatable {
        case whole
        case one(first: UInt64, last: UInt64)
        case several([Range<UInt64>])
        case unsatisfiable
    }

    /// The parts, and what follows the last.
    public let parts: [Part]
    public let end: [UInt8]

    /// No more ranges than this are sent in one response.
    static let limit = 16

    /// Bytes of the content.
    public var count: UInt64 {
        parts.reduce(UInt64(end.count)) { $0 + UInt64($1.head.count) + UInt64($1.range.count) }
    }

    /// - Parameters:
    ///   - ranges: what was asked for, of a representation of `complete` bytes.
    ///   - boundary: a random number.
    init(
        _ ranges: [Range<UInt64>], of complete: UInt64, contentType: [UInt8], boundary: UInt64
    ) {
        let delimiter = Array("\r\n--\(Self.text(boundary))".utf8)
        let type =
            contentType.isEmpty ? [] : Array("Content-Type: ".utf8) + contentType + [13, 10]
        parts = ranges.map { range in
            let place = "Content-Range: bytes \(range.lowerBound)-\(range.upperBound - 1)/"
            return Part(
                head: delimiter + [13, 10] + type + Array("\(place)\(complete)\r\n\r\n".utf8),
                range: range)
        }
        end = delimiter + Array("--\r\n".utf8)
    }

    /// The parts that a request asks for, where ``HitForm/several(count:boundary:)`` says that it
    /// does; `nil` otherwise.
    public init?(
        of stored: StoredMetadata, storedHead: Span<UInt8>, for request: borrowing RequestHead,
        in bytes: Span<UInt8>, boundary: UInt64
    ) {
        guard let complete = stored.bodyBytes, let value = request.fields.only(.range)?.value,
            case .several(let ranges) = Self.selection(value, in: bytes, of: complete)
        else { return nil }
        self.init(
            ranges, of: complete, contentType: Self.contentType(of: storedHead),
            boundary: boundary)
    }

    /// The boundary as it is written.
    @usableFromInline static func text(_ boundary: UInt64) -> String {
        let digits = String(boundary, radix: 16)
        return "section-" + String(repeating: "0", count: 16 - digits.count) + digits
    }

    /// What a range set selects. Too many ranges, or ranges that overlap, would make the response
    /// larger than the representation: they are answered with the whole (RFC 9110 §14.2).
    static func selection(
        _ value: ByteRange, in bytes: Span<UInt8>, of complete: UInt64
    ) -> Selection {
        let unit = ByteRange(start: value.start, count: min(6, value.count))
        guard bytes.holds(lowercase: "bytes=", at: unit) else { return .whole }
        var ranges: [Range<UInt64>] = []
        var count = 0
        var start = Int(unit.end)
        while start <= Int(value.end) {
            var end = start
            while end < Int(value.end), bytes[end] != UInt8(ascii: ",") { end += 1 }
            let spec = ByteRange(from: start, to: end)
            start = end + 1
            // An empty member of a list is nothing (RFC 9110 §5.6.1).
            if spec.indices.allSatisfy({ ASCII.isWhitespace(bytes[$0]) }) { continue }
            count += 1
            guard count <= limit else { return .whole }
            let range = RangeRequest(spec: spec, in: bytes)
            if case .ignored = range { return .whole }
            switch range.selection(of: complete) {
            case .whole: return .whole
            case .unsatisfiable: break
            case .bytes(let first, let last): ranges.append(first..<(last + 1))
            }
        }
        guard count > 0 else { return .whole }
        guard let only = ranges.first else { return .unsatisfiable }
        if ranges.count == 1 { return .one(first: only.lowerBound, last: only.upperBound - 1) }
        let sorted = ranges.sorted { $0.lowerBound < $1.lowerBound }
        for (left, right) in zip(sorted, sorted.dropFirst()) where left.overlaps(right) {
            return .whole
        }
        return .several(ranges)
    }

    private static func contentType(of head: Span<UInt8>) -> [UInt8] {
        var lines = StoredLines(head)
        while let line = lines.next(in: head) {
            if head.holds(lowercase: "content-type", at: line.name), line.name.count == 12 {
                return line.value.indices.map { head[$0] }
            }
        }
        return []
    }
}

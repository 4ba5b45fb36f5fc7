import HTTPCore
import PinfoldConfiguration

/// The fields of heads that the access log tells (`log.access.fields`), on their way from a worker
/// to the log's thread: for each, which head it is of, its name and its value.
///
/// They name themselves, because a reload reaches the workers and the log's thread at different
/// times.
struct HeadFields: Sendable {
    /// The most bytes of one exchange.
    static var maximumBytes: Int { 8 * 1024 }
    /// The most bytes of a value, those of several lines together.
    static var maximumValueBytes: Int { 1024 }

    /// A head.
    enum Head: UInt8 {
        case request
        case response
    }

    /// What precedes a name: the head, the length of the name, and that of the value in two bytes.
    private static var prefixBytes: Int { 4 }

    /// The names that are looked for, in lower case.
    private let request: [[UInt8]]
    private let response: [[UInt8]]
    /// Whether responses' heads must be kept.
    var needsResponse: Bool { !response.isEmpty }

    /// The fields of heads among those of a line; `nil` if there are none.
    init?(_ fields: [AccessLogField]) {
        request = fields.compactMap {
            if case .request(let name) = $0 { Array(name.utf8) } else { nil }
        }
        response = fields.compactMap {
            if case .response(let name) = $0 { Array(name.utf8) } else { nil }
        }
        if request.isEmpty, response.isEmpty { return nil }
    }

    // MARK: For the worker

    /// The fields in the heads of an exchange.
    /// - Parameters:
    ///   - head: the request's, as the client sent it, in the form of HTTP/1.
    ///   - answer: the response's, likewise; empty if it is not known.
    ///   - isAnswerCut: whether that is only its beginning.
    func collect(
        _ head: Span<UInt8>, _ answer: [UInt8], isAnswerCut: Bool = false
    ) -> [UInt8] {
        head.withUnsafeBytes { head in
            answer.withUnsafeBytes { answer in
                let asked = request.isEmpty ? [] : Self.find(request, in: head)
                let answered =
                    response.isEmpty ? [] : Self.find(response, in: answer, isCut: isAnswerCut)
                var left = Self.count(request, in: asked) + Self.count(response, in: answered)
                var fields: [UInt8] = []
                Self.collect(request, in: asked, head, .request, to: &fields, left: &left)
                Self.collect(response, in: answered, answer, .response, to: &fields, left: &left)
                return fields
            }
        }
    }

    /// How many of the names were found.
    private static func count(
        _ names: [[UInt8]], in found: [(name: Int, value: Range<Int>)]
    ) -> Int {
        names.indices.count { index in found.contains { $0.name == index } }
    }

    /// Adds the values of the lines that were found. Of a URL that is cut within its userinfo
    /// nobody could tell that it has some, so that is masked before.
    /// - Parameter left: how many values are still to be added, this head's and others. Each has
    ///   its share of the room, so that no field can keep others out.
    private static func collect(
        _ names: [[UInt8]], in found: [(name: Int, value: Range<Int>)],
        _ bytes: UnsafeRawBufferPointer, _ head: Head, to fields: inout [UInt8],
        left: inout Int
    ) {
        for (index, name) in names.enumerated() where found.contains(where: { $0.name == index }) {
            let start = fields.count
            fields += [head.rawValue, UInt8(clamping: name.count), 0, 0]
            fields += name
            let valueStart = fields.count
            let share = (maximumBytes - start) / left - (valueStart - start)
            left -= 1
            guard share >= 0 else {
                fields.removeSubrange(start...)
                continue
            }
            let limit = min(share, maximumValueBytes)
            for line in found where line.name == index && fields.count - valueStart < limit {
                if fields.count > valueStart { fields += ", ".utf8 }
                let value = bytes[line.value]
                // Location, Origin, Referer and many others have URLs.
                if value.contains(UInt8(ascii: "@")) {
                    fields += MaskedHead.withoutUserinfo(value)
                } else {
                    fields += value
                }
            }
            let excess = fields.count - valueStart - limit
            if excess > 0 { fields.removeLast(excess) }
            let length = fields.count - valueStart
            fields[start + 2] = UInt8(truncatingIfNeeded: length)
            fields[start + 3] = UInt8(truncatingIfNeeded: length >> 8)
        }
    }

    /// The lines whose names are among these, with the ranges of their values.
    /// - Parameter isCut: whether more followed: the line at the end would then be another one.
    private static func find(
        _ names: [[UInt8]], in bytes: UnsafeRawBufferPointer, isCut: Bool = false
    ) -> [(name: Int, value: Range<Int>)] {
        var found: [(name: Int, value: Range<Int>)] = []
        var start = 0
        while start < bytes.count {
            let newline = bytes[start...].firstIndex(of: UInt8(ascii: "\n"))
            if newline == nil, isCut { break }
            let end = newline ?? bytes.count
            // A start line has a space before its first colon, and is no field's.
            if let colon = bytes[start..<end].firstIndex(of: UInt8(ascii: ":")),
                let name = names.firstIndex(where: { isEqual($0, bytes[start..<colon]) })
            {
                found.append((name, trimmed(colon + 1..<end, of: bytes)))
            }
            start = end + 1
        }
        return found
    }

    private static func isEqual(
        _ name: [UInt8], _ written: Slice<UnsafeRawBufferPointer>
    ) -> Bool {
        name.count == written.count
            && zip(name, written).allSatisfy { $0 == ASCII.lowercased($1) }
    }

    /// A range without the white space at both ends.
    private static func trimmed(
        _ range: Range<Int>, of bytes: UnsafeRawBufferPointer
    ) -> Range<Int> {
        func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0D }
        var (start, end) = (range.lowerBound, range.upperBound)
        while start < end, isSpace(bytes[start]) { start += 1 }
        while start < end, isSpace(bytes[end - 1]) { end -= 1 }
        return start..<end
    }

    // MARK: For the log's thread

    /// The value of a field; `nil` if the head does not have it.
    static func value(
        of name: [UInt8], in head: Head, among fields: UnsafeRawBufferPointer
    ) -> UnsafeRawBufferPointer? {
        var start = 0
        while start + prefixBytes <= fields.count {
            let nameStart = start + prefixBytes
            let valueStart = nameStart + Int(fields[start + 1])
            let end = valueStart + Int(fields[start + 2]) + Int(fields[start + 3]) << 8
            if fields[start] == head.rawValue,
                fields[nameStart..<valueStart].elementsEqual(name)
            {
                return UnsafeRawBufferPointer(rebasing: fields[valueStart..<end])
            }
            start = end
        }
        return nil
    }
}

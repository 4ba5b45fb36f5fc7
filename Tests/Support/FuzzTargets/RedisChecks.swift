import RedisProtocol

extension FuzzTarget {
    /// The first byte selects the limits, and whether strings are read in pieces; what a server
    /// sends follows.
    ///
    /// It is read the same however it arrives, within the limits, and again after it has been
    /// written.
    func checkRedisReplies(_ bytes: [UInt8]) throws(FuzzCheckError) -> Bool {
        guard let selector = bytes.first else { return false }
        var limits = RESPLimits()
        if selector & 1 != 0 {
            limits.lineBytes = 12
            limits.bulkBytes = 20
            limits.depth = 3
            limits.elements = 12
            limits.replyBytes = 24
        }
        let stream = Array(bytes.dropFirst())
        let found = try Arrivals.read(stream) { ends in
            RedisArrival(stream, ends, limits, streams: selector & 2 != 0)
        }
        for value in found.values {
            guard value.levels <= limits.depth, value.count <= limits.elements else {
                throw FuzzCheckError("\(value) is beyond the limits")
            }
        }
        let written = found.values.flatMap(\.written)
        let again = RedisArrival(written, [written.count], RESPLimits(), streams: false)
        // A number that is none is not equal to itself.
        guard "\(again.values)" == "\(found.values)", again.error == nil else {
            throw FuzzCheckError("\(found.values) are read as \(again)")
        }
        return found.error == nil && !found.items.isEmpty
    }
}

/// What was read of a stream.
private struct RedisArrival: Equatable {
    /// Replies, messages and strings that were read in pieces, each as text.
    var items: [String] = []
    /// The replies.
    var values: [RESPValue] = []
    var error: RESPError?

    init(_ bytes: [UInt8], _ ends: [Int], _ limits: RESPLimits, streams: Bool) {
        var reader = RESPReader(limits: limits)
        var streamed: [UInt8] = []
        var start = 0
        do throws(RESPError) {
            for end in ends {
                let piece = Array(bytes[start..<end])
                var position = 0
                while let event = try reader.next(
                    piece.span, at: &position, streamsBulk: streams)
                {
                    switch event {
                    case .reply(let value):
                        items.append("\(value)")
                        values.append(value)
                    case .push(let values): items.append("> \(values)")
                    case .bulkBegins: streamed = []
                    case .bulkBytes(let range): streamed += piece[range]
                    case .bulkEnds: items.append("$ \(streamed)")
                    }
                }
                start = end
            }
        } catch {
            self.error = error
        }
    }

    static func == (left: RedisArrival, right: RedisArrival) -> Bool {
        left.items == right.items && left.error == right.error
    }
}

extension RESPValue {
    /// Levels of aggregates.
    fileprivate var levels: Int {
        switch self {
        case .array(let elements), .set(let elements):
            1 + (elements.map(\.levels).max() ?? 0)
        case .map(let entries):
            1 + (entries.map { max($0.key.levels, $0.value.levels) }.max() ?? 0)
        case .null, .boolean, .integer, .double, .bigNumber, .simple, .bulk, .verbatim, .error: 0
        }
    }

    /// The number of values in it, including itself.
    fileprivate var count: Int {
        switch self {
        case .array(let elements), .set(let elements):
            elements.reduce(1) { $0 + $1.count }
        case .map(let entries): entries.reduce(1) { $0 + $1.key.count + $1.value.count }
        case .null, .boolean, .integer, .double, .bigNumber, .simple, .bulk, .verbatim, .error: 1
        }
    }

    /// It as a server sends it.
    fileprivate var written: [UInt8] {
        func line(_ type: String, _ text: [UInt8]) -> [UInt8] {
            Array(type.utf8) + text + Array("\r\n".utf8)
        }
        func string(_ type: String, _ bytes: [UInt8]) -> [UInt8] {
            line(type, Array("\(bytes.count)".utf8)) + bytes + Array("\r\n".utf8)
        }
        func all(_ type: String, _ values: [RESPValue], count: Int) -> [UInt8] {
            line(type, Array("\(count)".utf8)) + values.flatMap(\.written)
        }
        switch self {
        case .null: return line("_", [])
        case .boolean(let flag): return line("#", Array((flag ? "t" : "f").utf8))
        case .integer(let number): return line(":", Array("\(number)".utf8))
        case .double(let number): return line(",", Array("\(number)".utf8))
        case .bigNumber(let digits): return line("(", digits)
        case .simple(let text): return line("+", text)
        case .bulk(let bytes): return string("$", bytes)
        case .verbatim(let format, let bytes):
            return string("=", format + Array(":".utf8) + bytes)
        case .error(let text): return string("!", text)
        case .array(let values): return all("*", values, count: values.count)
        case .set(let values): return all("~", values, count: values.count)
        case .map(let entries):
            return all("%", entries.flatMap { [$0.key, $0.value] }, count: entries.count)
        }
    }
}

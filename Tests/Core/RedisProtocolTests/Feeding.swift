@testable import RedisProtocol

/// Replies and messages read from bytes that arrive in pieces; strings that are read in pieces are
/// put together.
struct Feeding: Equatable {
    enum Item: Equatable {
        case reply(RESPValue)
        case push([RESPValue])
        case streamed([UInt8])
    }

    var items: [Item] = []
    var error: RESPError?
    /// Whether it ended between two replies.
    var isBetweenReplies = false

    /// - Parameter size: bytes of a piece.
    init(_ bytes: [UInt8], inPiecesOf size: Int, limits: RESPLimits = RESPLimits(), streams: Bool) {
        var reader = RESPReader(limits: limits)
        var streamed: [UInt8] = []
        var start = 0
        do throws(RESPError) {
            while start < bytes.count {
                let piece = Array(bytes[start..<min(bytes.count, start + size)])
                var position = 0
                while let event = try reader.next(
                    piece.span, at: &position, streamsBulk: streams)
                {
                    switch event {
                    case .reply(let value): items.append(.reply(value))
                    case .push(let values): items.append(.push(values))
                    case .bulkBegins: streamed = []
                    case .bulkBytes(let range): streamed += piece[range]
                    case .bulkEnds: items.append(.streamed(streamed))
                    }
                }
                start += position
                if position < piece.count { break }
            }
        } catch {
            self.error = error
        }
        isBetweenReplies = reader.isBetweenReplies
    }

    /// The same in pieces of one byte, of a few and of all, which must not matter.
    static func each(
        _ text: String, limits: RESPLimits = RESPLimits(), streams: Bool = false
    ) -> [Feeding] {
        let bytes = Array(text.utf8)
        return [1, 2, 3, 7, max(1, bytes.count)].map {
            Feeding(bytes, inPiecesOf: $0, limits: limits, streams: streams)
        }
    }
}

extension RESPValue {
    /// A bulk string.
    static func string(_ text: String) -> RESPValue { .bulk(Array(text.utf8)) }
    /// A simple string.
    static func word(_ text: String) -> RESPValue { .simple(Array(text.utf8)) }
    /// An error.
    static func failing(_ text: String) -> RESPValue { .error(Array(text.utf8)) }
}

extension RESPEntry {
    init(_ key: String, _ value: RESPValue) { self.init(key: .string(key), value: value) }
}

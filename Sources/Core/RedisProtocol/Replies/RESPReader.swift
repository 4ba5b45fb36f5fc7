/// Reads replies and push messages from what arrives: values, or, for a large string, its bytes
/// where they are. After an error it throws the same one again.
package struct RESPReader: Sendable {
    /// What was read.
    package enum Event: Sendable, Hashable {
        /// The reply to the oldest command that has none.
        case reply(RESPValue)
        /// A message that answers no command; its first element says what it is.
        case push([RESPValue])
        /// The reply is a string, whose bytes follow.
        /// - Parameter count: how many; `nil` if that is not known before its end.
        case bulkBegins(count: Int?)
        /// This range of the bytes that were passed.
        case bulkBytes(Range<Int>)
        /// The reply is complete.
        case bulkEnds
    }

    /// An aggregate that has not ended.
    private struct Partial: Sendable {
        let kind: RESPAggregate
        var values: [RESPValue] = []
        /// The entries of a map or an attribute, in place of values.
        var entries: [RESPEntry] = []
        /// The key of the entry whose value is next.
        var key: RESPValue?

        /// - Parameter count: how many values are announced, if that is known.
        init(_ kind: RESPAggregate, count: Int?) {
            self.kind = kind
            // What is only announced takes no more memory than this.
            let count = min(count ?? 0, 64)
            switch kind {
            case .array, .set, .push: values.reserveCapacity(count)
            case .map, .attribute: entries.reserveCapacity(count / 2)
            }
        }

        mutating func add(_ value: RESPValue) {
            switch kind {
            case .array, .set, .push: values.append(value)
            case .map, .attribute:
                if let key {
                    entries.append(RESPEntry(key: key, value: value))
                    self.key = nil
                } else {
                    key = value
                }
            }
        }
    }

    private let limits: RESPLimits
    private var parser: RESPParser
    private var partial: [Partial] = []
    private var bulk: [UInt8] = []
    private var bulkKind = RESPBulk.string
    /// Whether the string's length was known when it began.
    private var hasLength = false
    private var streams = false
    /// Bytes that are kept of the reply so far.
    private var kept = 0
    /// Why nothing can be read any longer.
    private var failure: RESPError?

    /// A reader at the beginning of a reply.
    package init(limits: RESPLimits = RESPLimits()) {
        self.limits = limits
        parser = RESPParser(limits: limits)
    }

    /// Whether no reply has begun: a connection may only end here.
    package var isBetweenReplies: Bool { failure == nil && parser.isBetweenReplies }

    /// Reads up to the next event.
    /// - Parameters:
    ///   - bytes: what has arrived.
    ///   - position: how much of it has been read; moved on.
    ///   - streamsBulk: whether the reply that is next, if it is a bulk string, is read in pieces.
    ///     It may be another one in each call, but must not change within a reply.
    /// - Returns: `nil` if all has been read, and more is needed.
    package mutating func next(
        _ bytes: Span<UInt8>, at position: inout Int, streamsBulk: Bool = false
    ) throws(RESPError) -> Event? {
        if let failure { throw failure }
        do throws(RESPError) {
            while let token = try parser.next(bytes, at: &position) {
                if let event = try take(token, bytes, streamsBulk) { return event }
            }
        } catch {
            failure = error
            throw error
        }
        return nil
    }

    private mutating func take(
        _ token: RESPToken, _ bytes: Span<UInt8>, _ streamsBulk: Bool
    ) throws(RESPError) -> Event? {
        switch token {
        case .null: return add(.null)
        case .boolean(let flag): return add(.boolean(flag))
        case .integer(let number): return add(.integer(number))
        case .double(let number): return add(.double(number))
        case .bigNumber: return add(.bigNumber(try keepLine()))
        case .simple: return add(.simple(try keepLine()))
        case .error: return add(.error(try keepLine()))
        case .bulkBegins(let kind, let count):
            (streams, bulkKind) = (streamsBulk && partial.isEmpty && kind == .string, kind)
            if streams { return .bulkBegins(count: count) }
            hasLength = count != nil
            try keep(count ?? 0)
            bulk = []
            bulk.reserveCapacity(min(count ?? 0, 1 << 16))
            return nil
        case .bulkBytes(let range):
            if streams { return .bulkBytes(range) }
            if !hasLength { try keep(range.count) }
            bytes.extracting(range).withUnsafeBufferPointer { bulk.append(contentsOf: $0) }
            return nil
        case .bulkEnds:
            if streams {
                streams = false
                return .bulkEnds
            }
            return add(try endBulk())
        case .aggregateBegins(let kind, let count):
            partial.append(Partial(kind, count: count))
            return nil
        case .aggregateEnds: return endAggregate()
        }
    }

    private mutating func keepLine() throws(RESPError) -> [UInt8] {
        try keep(parser.line.count)
        return parser.line
    }

    private mutating func keep(_ count: Int) throws(RESPError) {
        guard count <= limits.replyBytes - kept else {
            throw .replyTooLong(limit: limits.replyBytes)
        }
        kept += count
    }

    private mutating func endBulk() throws(RESPError) -> RESPValue {
        let bytes = bulk
        bulk = []
        switch bulkKind {
        case .string: return .bulk(bytes)
        case .error: return .error(bytes)
        case .verbatim:
            guard bytes.count >= 4, bytes[3] == UInt8(ascii: ":") else {
                throw .malformedVerbatim
            }
            return .verbatim(format: Array(bytes[..<3]), Array(bytes[4...]))
        }
    }

    private mutating func endAggregate() -> Event? {
        let ended = partial.removeLast()
        switch ended.kind {
        case .array: return add(.array(ended.values))
        case .set: return add(.set(ended.values))
        case .map: return add(.map(ended.entries))
        case .push:
            kept = 0
            return .push(ended.values)
        // Nothing is asked of a server that it answers by one.
        case .attribute: return nil
        }
    }

    /// A value is complete.
    private mutating func add(_ value: RESPValue) -> Event? {
        guard let last = partial.indices.last else {
            kept = 0
            return .reply(value)
        }
        partial[last].add(value)
        return nil
    }
}

import HTTPCore

/// One event of a `text/event-stream` (WHATWG HTML, "Server-sent events").
public struct ServerSentEvent: Hashable, Sendable {
    /// `message` unless the server names another.
    public var type: String
    /// Its data lines, a line feed between each two.
    public var data: String
    /// The ID in force: what Last-Event-ID says when the stream is asked for again.
    public var lastEventID: String

    /// An event.
    public init(type: String = "message", data: String, lastEventID: String = "") {
        (self.type, self.data, self.lastEventID) = (type, data, lastEventID)
    }
}

/// Reads a `text/event-stream`, fed in chunks of any size.
///
///     stream  = [ bom ] *event
///     event   = *( comment / field ) end-of-line
///     comment = ":" *any-char end-of-line
///     field   = 1*name-char [ ":" [ space ] *any-char ] end-of-line
///
/// Lines end with CR, LF or both. What is not UTF-8 is replaced by U+FFFD. An event that the stream
/// ends in is none.
public struct ServerSentEventParser: Sendable {
    /// The media type of such a stream.
    public static let mediaType = "text/event-stream"

    /// What an event may take.
    public struct Limits: Hashable, Sendable {
        /// Of one event's data.
        public var eventBytes: Int
        /// Of one line, its end not included. Comments are not kept, and may be of any length.
        public var lineBytes: Int

        /// 1 MiB each unless more or less is named.
        public init(eventBytes: Int = 1 << 20, lineBytes: Int = 1 << 20) {
            (self.eventBytes, self.lineBytes) = (eventBytes, lineBytes)
        }
    }

    /// What an event may take.
    public let limits: Limits
    /// As of the last event that ended, also of one without data. Empty: none.
    public private(set) var lastEventID: String
    /// How long to wait before the stream is asked for again, if the server says so.
    public private(set) var reconnectionMilliseconds: Int64?

    private var line: [UInt8] = []
    private var data: [UInt8] = []
    private var type = ""
    private var nextID: String
    /// A comment: what it says is not kept.
    private var isInComment = false
    private var hasCarriageReturn = false
    /// Bytes of the byte order mark that the stream has begun with; nil: it is past that.
    private var markBytes: Int? = 0
    private var failure: ServerSentEventError?

    private static let mark: [UInt8] = [0xEF, 0xBB, 0xBF]

    /// - Parameter lastEventID: that of the stream which this one goes on from.
    public init(limits: Limits = Limits(), lastEventID: String = "") {
        (self.limits, self.lastEventID, nextID) = (limits, lastEventID, lastEventID)
    }

    /// Whether a Content-Type says that content is such a stream, whatever its parameters.
    public static func isEventStream(contentType value: String) -> Bool {
        let essence = value.utf8.prefix { $0 != UInt8(ascii: ";") }
        return Substring(essence).withoutOuterSpace.lowercasedASCII == mediaType
    }

    /// Takes a chunk.
    ///
    /// - Parameter events: those that end in the chunk are appended, also where it fails further
    ///   on.
    /// - Throws: where a limit is exceeded. After that nothing is read: each call throws the same.
    public mutating func parse(
        _ chunk: some Sequence<UInt8>, into events: inout [ServerSentEvent]
    ) throws(ServerSentEventError) {
        if let failure { throw failure }
        for byte in chunk {
            do throws(ServerSentEventError) {
                try take(byte, &events)
            } catch {
                failure = error
                throw error
            }
        }
    }

    private mutating func take(
        _ byte: UInt8, _ events: inout [ServerSentEvent]
    ) throws(ServerSentEventError) {
        if let count = markBytes {
            if byte == Self.mark[count] {
                markBytes = count + 1 == Self.mark.count ? nil : count + 1
                return
            }
            // It only looked like the mark.
            markBytes = nil
            for byte in Self.mark[..<count] { try append(byte) }
        }
        defer { hasCarriageReturn = byte == 0x0D }
        switch byte {
        case 0x0A where hasCarriageReturn: break
        case 0x0A, 0x0D: try endLine(&events)
        default: try append(byte)
        }
    }

    private mutating func append(_ byte: UInt8) throws(ServerSentEventError) {
        if line.isEmpty, byte == UInt8(ascii: ":") { isInComment = true }
        guard !isInComment else { return }
        guard line.count < limits.lineBytes else { throw .lineTooLong }
        line.append(byte)
    }

    private mutating func endLine(
        _ events: inout [ServerSentEvent]
    ) throws(ServerSentEventError) {
        defer {
            line.removeAll(keepingCapacity: true)
            isInComment = false
        }
        guard !isInComment else { return }
        guard !line.isEmpty else {
            dispatch(&events)
            return
        }
        let colon = line.firstIndex(of: UInt8(ascii: ":")) ?? line.endIndex
        var value = line[colon...].dropFirst()
        if value.first == 0x20 { value.removeFirst() }
        try process(String(decoding: line[..<colon], as: UTF8.self), value)
    }

    private mutating func process(
        _ field: String, _ value: ArraySlice<UInt8>
    ) throws(ServerSentEventError) {
        switch field {
        case "event": type = String(decoding: value, as: UTF8.self)
        case "data":
            guard data.count + value.count <= limits.eventBytes else { throw .eventTooLarge }
            data += value
            data.append(0x0A)
        case "id":
            if !value.contains(0) { nextID = String(decoding: value, as: UTF8.self) }
        case "retry":
            if !value.isEmpty, value.allSatisfy({ (0x30...0x39).contains($0) }) {
                reconnectionMilliseconds = Int64(String(decoding: value, as: UTF8.self)) ?? .max
            }
        default: break
        }
    }

    private mutating func dispatch(_ events: inout [ServerSentEvent]) {
        lastEventID = nextID
        if !data.isEmpty {
            events.append(
                ServerSentEvent(
                    type: type.isEmpty ? "message" : type,
                    data: String(decoding: data.dropLast(), as: UTF8.self),
                    lastEventID: lastEventID))
        }
        data.removeAll(keepingCapacity: data.count < 65_536)
        type = ""
    }
}

/// Why a stream of events cannot be read on.
public enum ServerSentEventError: Error, Hashable, Sendable {
    /// A line has more bytes than ``ServerSentEventParser/Limits/lineBytes``.
    case lineTooLong
    /// The data of an event has more bytes than ``ServerSentEventParser/Limits/eventBytes``.
    case eventTooLarge
}

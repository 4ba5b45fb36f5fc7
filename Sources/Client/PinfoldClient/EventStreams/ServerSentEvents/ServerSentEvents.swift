import HTTPCore

/// An event of a `text/event-stream` (WHATWG HTML, "Server-sent events").
public struct ServerSentEvent: Hashable, Sendable {
    /// The event's type; `message` unless the server specifies another one.
    public var type: String
    /// The event's data lines, separated by line feeds.
    public var data: String
    /// The last event ID in effect: the value of Last-Event-ID when the client reconnects.
    public var lastEventID: String

    /// Creates an event.
    public init(type: String = "message", data: String, lastEventID: String = "") {
        (self.type, self.data, self.lastEventID) = (type, data, lastEventID)
    }
}

/// An incremental parser of `text/event-stream` that accepts chunks of any size.
///
///     stream  = [ bom ] *event
///     event   = *( comment / field ) end-of-line
///     comment = ":" *any-char end-of-line
///     field   = 1*name-char [ ":" [ space ] *any-char ] end-of-line
///
/// Lines end with CR, LF or both. Invalid UTF-8 is replaced by U+FFFD. An incomplete event at the
/// end of the stream is discarded.
public struct ServerSentEventParser: Sendable {
    /// The media type of event streams.
    public static let mediaType = "text/event-stream"

    /// The maximum sizes of lines and events.
    public struct Limits: Hashable, Sendable {
        /// The maximum size of one event's data, in bytes.
        public var eventBytes: Int
        /// The maximum length of a line without its terminator, in bytes. Comments are not stored
        /// and may have any length.
        public var lineBytes: Int

        /// Creates limits; both are 1 MiB by default.
        public init(eventBytes: Int = 1 << 20, lineBytes: Int = 1 << 20) {
            (self.eventBytes, self.lineBytes) = (eventBytes, lineBytes)
        }
    }

    /// The parser's limits.
    public let limits: Limits
    /// The last event ID as of the most recent event, even if that event had no data. Empty if
    /// there is none.
    public private(set) var lastEventID: String
    /// The reconnection time in milliseconds, if the server has sent one.
    public private(set) var reconnectionMilliseconds: Int64?

    private var line: [UInt8] = []
    private var data: [UInt8] = []
    private var type = ""
    private var nextID: String
    /// Whether the current line is a comment, whose text is discarded.
    private var isInComment = false
    private var hasCarriageReturn = false
    /// The number of bytes of the byte order mark read so far, or `nil` once it has been passed.
    private var markBytes: Int? = 0
    private var failure: ServerSentEventError?

    private static let mark: [UInt8] = [0xEF, 0xBB, 0xBF]

    /// - Parameter lastEventID: The last event ID of the stream that this one continues.
    public init(limits: Limits = Limits(), lastEventID: String = "") {
        (self.limits, self.lastEventID, nextID) = (limits, lastEventID, lastEventID)
    }

    /// Whether a Content-Type denotes an event stream. Its parameters are ignored.
    public static func isEventStream(contentType value: String) -> Bool {
        let essence = value.utf8.prefix { $0 != UInt8(ascii: ";") }
        return Substring(essence).withoutOuterSpace.lowercasedASCII == mediaType
    }

    /// Parses a chunk.
    ///
    /// - Parameter events: The events completed by this chunk are appended to it, even if parsing
    ///   fails later in the chunk.
    /// - Throws: ``ServerSentEventError`` if a limit is exceeded. After that the parser reads
    ///   nothing more, and each call throws the same error.
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
            // It only looked like a byte order mark.
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

/// An error that ends the parsing of an event stream.
public enum ServerSentEventError: Error, Hashable, Sendable {
    /// A line has more bytes than ``ServerSentEventParser/Limits/lineBytes``.
    case lineTooLong
    /// An event's data has more bytes than ``ServerSentEventParser/Limits/eventBytes``.
    case eventTooLarge
}
